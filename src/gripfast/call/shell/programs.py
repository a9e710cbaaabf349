"""The programs whose options are known, as data: by leading words, what may follow without being asked about.

An option that is not here is asked about, so a table errs by leaving out. Left out on purpose is everything
that runs another program, writes a file, loads code or settings from elsewhere, waits forever, or opens an
editor or pager. `HARMLESS` are those that can do no harm whatever they are given, `PROJECT` those that run the
project's own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gripfast.call.shell.options import Program

# Options of git's diff machinery: not --ext-diff, --textconv, --output, --no-index, -O.
_DIFF = """-p -u -s -U[=] --patch --no-patch --unified[=] --raw --patch-with-raw --patch-with-stat --minimal
    --patience --histogram --diff-algorithm= --stat[=] --compact-summary --numstat --shortstat
    --dirstat[=] --cumulative --summary --name-only --name-status -z --color[=] --no-color
    --color-words[=] --word-diff[=] --word-diff-regex=TEXT --color-moved[=] --no-renames --check
    --full-index --binary --abbrev[=] -B[=] -M[=] -C[=] -D --find-renames[=] --find-copies[=]
    --find-copies-harder --diff-filter= -S=TEXT -G=TEXT --pickaxe-all --pickaxe-regex -R --relative[=] -a
    --text --ignore-cr-at-eol --ignore-space-at-eol -b --ignore-space-change -w --ignore-all-space
    --ignore-blank-lines --inter-hunk-context= -W --function-context --exit-code --quiet --no-ext-diff
    --no-textconv --src-prefix=TEXT --dst-prefix=TEXT --no-prefix --ignore-submodules[=] --submodule[=]
    --merge-base --cached --staged -0 -1 -2 -3"""
_LOG = """-# -n= --max-count= --skip= --since=TEXT --after=TEXT --until=TEXT --before=TEXT --author=TEXT
    --committer=TEXT --grep=TEXT --all-match --invert-grep -i --regexp-ignore-case -E --extended-regexp -F
    --fixed-strings -P --perl-regexp --merges --no-merges --first-parent --all --branches[=] --tags[=]
    --remotes[=] --glob=TEXT --exclude=TEXT --follow --oneline --pretty[=]TEXT --format[=]TEXT
    --abbrev-commit --no-abbrev-commit --graph --no-graph --decorate[=] --no-decorate --date=TEXT
    --relative-date --reverse --topo-order --date-order --author-date-order --cherry --cherry-pick
    --cherry-mark --left-right --left-only --right-only --boundary --simplify-by-decoration --full-history
    -L=TEXT -g --walk-reflogs --show-pulls --no-walk[=] --parents --children --source --notes[=]
    --no-notes -m -c --cc --min-parents[=] --max-parents[=] --log-size --mailmap --ancestry-path[=]"""
_GREP = """-# -E -F -G -P -e=ANY -f= -i -v -w -x -y -c -L -l -q -s -o -m= -b -H -h -n -T -Z -z -A= -B=
    -C= -a -I -r -R -U -D= -d= --extended-regexp --fixed-strings --basic-regexp --perl-regexp
    --regexp=ANY --file= --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp
    --count --color[=] --colour[=] --files-without-match --files-with-matches --quiet --silent
    --no-messages --only-matching --max-count= --byte-offset --with-filename --no-filename --line-number
    --initial-tab --null --null-data --after-context= --before-context= --context= --text --binary-files=
    --devices= --directories= --exclude=TEXT --exclude-dir=TEXT --exclude-from= --include=TEXT --recursive
    --dereference-recursive --line-buffered --label=TEXT --help --version -V"""
_PYTEST = """-v -q -s -x -l -h -k=TEXT -m=TEXT -n= -r= --verbose --quiet --exitfirst --maxfail= --lf
    --last-failed --ff --failed-first --nf --new-first --sw --stepwise --stepwise-skip --co --collect-only
    --tb= --showlocals --capture= --durations= --durations-min= --no-header --no-summary --color=
    --disable-warnings --disable-pytest-warnings -W=TEXT --strict-markers --strict-config --markers
    --fixtures --version --setup-show --setup-only --deselect= --ignore= --ignore-glob= --numprocesses=
    --dist= --cov[=] --cov-branch --cov-report= --cov-fail-under= --no-cov --runxfail --cache-show[=]
    --timeout= --asyncio-mode= --doctest-modules --log-level= --log-cli-level= --show-capture=
    --full-trace --reruns= --benchmark-skip --benchmark-disable --hypothesis-show-statistics
    --hypothesis-seed= --snapshot-details"""
_CARGO = """-p= --package= --workspace --all --exclude= --lib --bins --bin= --examples --example= --tests
    --test= --benches --bench= --all-targets -F= --features= --all-features --no-default-features -r
    --release --profile= -j= --jobs= --keep-going -q --quiet -v --verbose --color= --message-format=
    --locked --offline --frozen --doc --no-run --no-fail-fast --timings --ignore-rust-version -h --help"""
_GO = """-v -race -msan -asan -n -x -a -p= -tags=TEXT -mod= -trimpath -work -json -count= -run=TEXT
    -skip=TEXT -bench=TEXT -benchmem -benchtime= -cpu= -cover -covermode= -coverpkg= -failfast -fullpath
    -list=TEXT -parallel= -short -shuffle= -timeout= -vet= -buildvcs[=]"""
_FD = """-H -I -u -s -i -g -F -a -0 -p -L -d= -t= -e= -E=TEXT -S=TEXT -c= -j= -1 -q -h -V --hidden
    --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted --case-sensitive
    --ignore-case --glob --regex --fixed-strings --and=TEXT --absolute-path --print0 --full-path --follow
    --max-depth= --min-depth= --exact-depth= --prune --type= --extension= --exclude=TEXT --size=TEXT
    --changed-within=TEXT --changed-before=TEXT --owner=TEXT --color= --threads= --max-results= --quiet
    --show-errors --base-directory= --search-path= --strip-cwd-prefix[=] --one-file-system --help
    --version"""
_RUFF_CHECK = """--fix --no-fix --unsafe-fixes --no-unsafe-fixes --show-fixes --diff --fix-only
    --ignore-noqa --output-format= --target-version= --preview --no-preview --select= --ignore=
    --extend-select= --extend-ignore= --per-file-ignores= --fixable= --unfixable= --exclude=
    --extend-exclude= --respect-gitignore --force-exclude -n --no-cache --isolated --statistics --add-noqa
    --show-files --show-settings -v --verbose -q --quiet -s --silent -e --exit-zero --exit-non-zero-on-fix
    -h --help --line-length= --color="""

_SED = """-n -E -r -s -u -z -e=SED --expression=SED --quiet --silent --regexp-extended --separate --posix"""
_NPM = "-s --silent --if-present -w= --workspace= --workspaces --include-workspace-root"
_NPM_AFTER = """--run --watch=TEXT --no-watch --coverage --silent --verbose --grep=TEXT -t=TEXT --testNamePattern=TEXT
    --testPathPattern=TEXT --reporter=TEXT --bail --ci --fix --check --passWithNoTests --noEmit --update -u --help
    --version"""
_MAKE = """-j[=] -k -n -s -i -B -q -w --jobs[=] --keep-going --dry-run --just-print --silent --quiet
    --always-make --question --no-print-directory --print-directory --output-sync[=] -O[=] --trace -h
    --help -v --version"""
_GRADLE = (
    "-q -i -s --info --quiet --stacktrace --no-daemon --offline --continue --rerun-tasks --parallel -x= --tests=TEXT"
)
_MVN = "-q -e -o -B -U -T= -pl= -am -ntp -DskipTests --batch-mode --quiet --offline --no-transfer-progress"
_UV_PIP = "-r= -e= -U -q --upgrade --quiet --no-deps --requirement= --editable= --dry-run"
_TOOL = Program("*", operands="inside")
_SCRIPTS = Program(
    "* --tsconfig= --project= -P= -T --transpile-only --esm --no-cache --version --help", "inside", leading=True
)

_VENVS = (".venv", "venv", "./.venv", "./venv")
_TABLES: Mapping[str, Program] = {
    # looking at files
    "ls": Program(
        """-a -A -b -B -c -C -d -f -F -g -G -h -H -i -I=TEXT -k -l -L -m -n -N -o -p -q -Q -r -R -s -S -t
        -T= -u -U -v -w= -x -X -Z -1 --all --almost-all --author --escape --block-size= --ignore-backups
        --color[=] --directory --classify[=] --file-type --format= --full-time --group-directories-first
        --no-group --human-readable --si --dereference --hide=TEXT --hyperlink[=] --indicator-style=
        --inode --ignore=TEXT --kibibytes --numeric-uid-gid --literal --quote-name --quoting-style=
        --reverse --recursive --size --sort= --time= --time-style= --width= --zero --help --version"""
    ),
    "cat": Program(
        """-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank
        --show-tabs --show-nonprinting --help --version"""
    ),
    "tac": Program("-b -r -s=TEXT --before --regex --separator=TEXT"),
    "nl": Program("-b=TEXT -d=TEXT -f=TEXT -h=TEXT -i= -l= -n= -p -s=TEXT -v= -w= --body-numbering=TEXT"),
    "head": Program("-# -c= -n= -q -v -z --bytes= --lines= --quiet --silent --verbose --zero-terminated --help"),
    "tail": Program("-# -c= -n= -q -v -z --bytes= --lines= --quiet --silent --verbose --zero-terminated --help"),
    "wc": Program("-c -m -l -L -w --bytes --chars --lines --max-line-length --words --total= --help --version"),
    "stat": Program(
        "-c=TEXT -f -L -t --dereference --file-system --format=TEXT --printf=TEXT --terse --help --version"
    ),
    "file": Program(
        """-b -h -i -k -L -N -r -0 -E --brief --mime --mime-type --mime-encoding --extension --keep-going
        --dereference --no-dereference --no-pad --raw --print0 --help --version -v"""
    ),
    "du": Program(
        """-a -b -B= -c -d= -D -h -H -k -l -L -m -P -s -S -t= -x -0 --all --apparent-size --block-size=
        --bytes --total --max-depth= --dereference-args --human-readable --si --count-links
        --separate-dirs --summarize --one-file-system --threshold= --time[=] --time-style= --exclude=TEXT
        --inodes --null --help --version"""
    ),
    "df": Program(
        """-a -B= -h -H -i -k -l -P -t= -T -x= --all --block-size= --human-readable --si --inodes --local
        --portability --output[=] --total --type= --print-type --exclude-type= --help --version"""
    ),
    "tree": Program(
        """-a -d -l -f -x -L= -P=TEXT -I=TEXT -N -Q -p -u -g -s -h -D -F -q -v -t -c -U -r -i -A -S -n -C
        -J -X --gitignore --ignore-case --matchdirs --noreport --filelimit= --si --du --prune --dirsfirst
        --filesfirst --sort= --inodes --device --charset= --help --version"""
    ),
    "basename": Program("-a -s=TEXT -z --multiple --suffix=TEXT --zero", operands="text"),
    "dirname": Program("-z --zero", operands="text"),
    "realpath": Program("-e -m -L -P -q -s -z --relative-to= --relative-base= --canonicalize-existing --no-symlinks"),
    "readlink": Program("-f -e -m -n -q -s -v -z --canonicalize --no-newline"),
    "md5sum": Program("-b -t -z --tag --binary --text --zero -c --check --quiet --status --strict -w --warn"),
    "sha1sum": Program("-b -t -z --tag --binary --text --zero -c --check --quiet --status --strict -w --warn"),
    "sha256sum": Program("-b -t -z --tag --binary --text --zero -c --check --quiet --status --strict -w --warn"),
    "cksum": Program("--zero -z --untagged"),
    "cmp": Program("-b -i= -l -n= -s --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent"),
    "diff": Program(
        """-# -q -s -c -C= -u -U= -e -n -y -W= -p -F=TEXT -t -T -r -N -i -E -Z -b -w -B -I=TEXT -a -d
        -x=TEXT -X= -S= --brief --report-identical-files --context[=] --unified[=] --ed --rcs
        --side-by-side --width= --left-column --suppress-common-lines --show-c-function --recursive
        --new-file --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change
        --ignore-all-space --ignore-blank-lines --text --strip-trailing-cr --color[=] --exclude=TEXT
        --exclude-from= --no-dereference --minimal --speed-large-files --label=TEXT --help"""
    ),
    "comm": Program("-1 -2 -3 -z --check-order --nocheck-order --output-delimiter=TEXT --total --zero-terminated"),
    "strings": Program("-a -f -n= -t= -e= -w --all --print-file-name --bytes= --radix= --encoding="),
    "od": Program("-A= -j= -N= -S= -t= -v -w[=] -a -b -c -d -f -i -l -o -s -x --address-radix= --format= --width[=]"),
    "hexdump": Program("-b -c -C -d -n= -o -s= -v -x --canonical --length= --skip="),
    "xxd": Program("-a -b -c= -C -e -g= -l= -o= -s= -u -p -i", operands="one"),
    # text from a pipe or a file
    "sort": Program(
        """-b -d -f -g -i -M -h -n -R -r -V -c -C -k=TEXT -m -s -t=TEXT -u -z --ignore-leading-blanks
        --dictionary-order --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort
        --human-numeric-sort --numeric-sort --random-sort --reverse --sort= --version-sort --check[=]
        --key=TEXT --merge --stable --field-separator=TEXT --unique --zero-terminated --debug --parallel=
        --help --version"""
    ),
    "uniq": Program(
        """-c -d -D -f= -i -s= -u -z -w= --count --repeated --all-repeated[=] --skip-fields= --group[=]
        --ignore-case --skip-chars= --unique --zero-terminated --check-chars= --help --version""",
        operands="one",
    ),
    "cut": Program(
        """-b=TEXT -c=TEXT -d=TEXT -f=TEXT -n -s -z --bytes=TEXT --characters=TEXT --delimiter=TEXT
        --fields=TEXT --complement --only-delimited --output-delimiter=TEXT --zero-terminated --help
        --version"""
    ),
    "tr": Program("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1", operands="text"),
    "paste": Program("-d=TEXT -s -z --delimiters=TEXT --serial --zero-terminated"),
    "join": Program("-a= -e=TEXT -i -j= -o=TEXT -t=TEXT -v= -1= -2= -z --header --ignore-case"),
    "fold": Program("-b -s -w= --bytes --spaces --width="),
    "fmt": Program("-# -c -s -t -u -w= -g= --width= --split-only"),
    "column": Program(
        "-t -s=TEXT -o=TEXT -n -x -c= -N=TEXT -J --table --separator=TEXT --output-separator=TEXT --json"
    ),
    "rev": Program(""),
    "expand": Program("-i -t= --initial --tabs="),
    "unexpand": Program("-a -t= --all --first-only --tabs="),
    "sed": Program(_SED, operands="sed", instead="-e --expression"),
    "sed -i": Program(_SED, operands="edited", instead="-e --expression"),
    "sed -i.bak": Program(_SED, operands="edited", instead="-e --expression"),
    "sed -E -i": Program(_SED, operands="edited", instead="-e --expression"),
    "sed -r -i": Program(_SED, operands="edited", instead="-e --expression"),
    "sed -Ei": Program(_SED, operands="edited", instead="-e --expression"),
    "awk": Program("-F=TEXT -v=TEXT", operands="awk"),
    "base64": Program("-d -w= -i --decode --wrap= --ignore-garbage"),
    "sha512sum": Program("-b -t -z --tag --binary --text --zero -c --check --quiet --status --strict -w --warn"),
    "jq": Program(
        """-n -r -j -a -s -c -C -M -S -e -R -h --null-input --raw-output --join-output --ascii-output
        --slurp --compact-output --color-output --monochrome-output --sort-keys --exit-status --raw-input
        --tab --indent= --unbuffered --stream --seq --help --version""",
        operands="jq",
    ),
    # searching
    "grep": Program(_GREP, operands="text paths", instead="-e -f --regexp --file"),
    "egrep": Program(_GREP, operands="text paths", instead="-e -f --regexp --file"),
    "fgrep": Program(_GREP, operands="text paths", instead="-e -f --regexp --file"),
    # not --pre, --hostname-bin, -z (they run programs)
    "rg": Program(
        """-A= -B= -C= -E= -F -H -I -L -M= -N -P -S -T= -U -a -c -d= -e=ANY -f= -g=TEXT -h -i -j= -l -m=
        -n -o -p -q -r=TEXT -s -t= -u -v -w -x -. -0 -V --after-context= --before-context= --context=
        --encoding= --fixed-strings --with-filename --no-filename --follow --max-columns=
        --max-columns-preview --no-line-number --pcre2 --smart-case --type-not= --multiline
        --multiline-dotall --text --count --count-matches --max-depth= --regexp=ANY --file= --glob=TEXT
        --iglob=TEXT --help --ignore-case --threads= --files --files-with-matches --files-without-match
        --max-count= --line-number --only-matching --pretty --quiet --replace=TEXT --case-sensitive
        --type= --type-list --unrestricted --invert-match --word-regexp --line-regexp --hidden --no-hidden
        --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-global
        --no-ignore-exclude --no-config --null --version --stats --json --vimgrep --column --no-column
        --heading --no-heading --trim --sort= --sortr= --color= --colors=TEXT --context-separator=TEXT
        --passthru --crlf --binary --one-file-system --max-filesize= --no-messages --debug --trace
        --line-buffered --engine= --ignore-file= --no-mmap --mmap --byte-offset --no-unicode --null-data
        --block-buffered --hyperlink-format=""",
        operands="text paths",
        instead="-e -f --regexp --file --files --type-list",
    ),
    # not -exec, -execdir, -ok, -okdir, -delete, -fprint, -fprintf, -fls, -files0-from
    "find": Program(
        """-H -L -P -O1 -O2 -O3 -maxdepth= -mindepth= -depth -d -mount -xdev -noleaf -regextype= -daystart
        -follow -warn -nowarn -name=TEXT -iname=TEXT -path=TEXT -ipath=TEXT -wholename=TEXT
        -iwholename=TEXT -regex=TEXT -iregex=TEXT -lname=TEXT -ilname=TEXT -type= -xtype= -size=TEXT
        -empty -newer= -anewer= -cnewer= -newermt=TEXT -newerat=TEXT -mtime=TEXT -atime=TEXT -ctime=TEXT
        -mmin=TEXT -amin=TEXT -cmin=TEXT -perm=ANY -user= -group= -uid= -gid= -nouser -nogroup -readable
        -writable -executable -links=TEXT -inum=TEXT -samefile= -fstype= -true -false -print -print0
        -printf=TEXT -ls -prune -quit -o -or -a -and -not""",
        style="words",
    ),
    # not -x, -X (they run programs), -l (runs ls)
    "fd": Program(_FD, operands="text paths"),
    "fdfind": Program(_FD, operands="text paths"),
    # the shell's own and the machine
    "echo": Program("*", operands="text"),
    "printf": Program("", operands="format"),
    "pwd": Program("-L -P", operands="none"),
    "true": Program("*", operands="text"),
    "false": Program("*", operands="text"),
    "cd": Program("-L -P -e", operands="directory"),
    "test": Program("", operands="test"),
    ":": Program("*", operands="text"),
    "exit": Program("", operands="targets"),
    "return": Program("", operands="targets"),
    "break": Program("", operands="targets"),
    "continue": Program("", operands="targets"),
    "wait": Program("", operands="none"),
    "set -e": Program("", operands="none"),
    "set -u": Program("", operands="none"),
    "set -x": Program("", operands="none"),
    "set -eu": Program("", operands="none"),
    "set -ex": Program("", operands="none"),
    "set +e": Program("", operands="none"),
    "set +x": Program("", operands="none"),
    "set -o pipefail": Program("", operands="none"),
    "set -eo pipefail": Program("", operands="none"),
    "set -euo pipefail": Program("", operands="none"),
    "set -uo pipefail": Program("", operands="none"),
    "set -exo pipefail": Program("", operands="none"),
    "set -euxo pipefail": Program("", operands="none"),
    "read": Program("-r -s -d=TEXT -n= -t= -p=TEXT", operands="names"),
    "export": Program("", operands="sets"),
    "jobs": Program("-l -p -r -s", operands="none"),
    "kill": Program("-9 -15 -2 -TERM -INT -KILL -HUP", operands="jobs", style="words"),
    **{f"{word} {place}/bin/activate": Program("", "none") for word in ("source", ".") for place in _VENVS},
    "command -v": Program("", operands="text"),
    "type": Program("-a -t -p -P -f", operands="text"),
    "which": Program("-a -s --all", operands="text"),
    "whereis": Program("-b -m -s", operands="text"),
    "date": Program(
        """-u -d=TEXT -I[=] -r= -R --date=TEXT --iso-8601[=] --reference= --rfc-email --rfc-3339= --utc
        --universal --debug --help --version""",
        operands="plus",
    ),
    "id": Program("-g -G -n -r -u -z --group --groups --name --real --user --zero", operands="text"),
    "whoami": Program("", operands="none"),
    "groups": Program("", operands="text"),
    "uname": Program("-a -s -n -r -v -m -p -i -o --all --kernel-name --nodename --kernel-release", operands="none"),
    "hostname": Program("-s -f -i -I -d --short --fqdn --long", operands="none"),
    "nproc": Program("--all --ignore=", operands="none"),
    "uptime": Program("-p -s --pretty --since", operands="none"),
    "free": Program("-b -k -m -g -h -t -w --human --mega --giga --total --wide", operands="none"),
    "ps": Program(
        """-A -a -d -e -f -F -l -L -j -y -M -p= -C= -u= -U= -g= -t= --pid= --ppid= --sort=
        --forest --no-headers  --user=""",
        operands="none",
    ),
    "pgrep": Program("-f -l -a -n -o -x -c -i -u= -P= --full --list-name --list-full --exact --count", "text"),
    "lsof": Program("-t -n -P -l -a -i[=]TEXT -p= -u= -c=", operands="text"),
    "ss": Program("-t -u -l -n -p -a -x -4 -6 -s -e -m -H", operands="text"),
    "netstat": Program("-t -u -l -n -p -a -r -i -s -4 -6", operands="none"),
    "docker ps": Program(
        "-a -q -n= -l -s --all --quiet --no-trunc --latest --size --format=TEXT --filter=TEXT", "none"
    ),
    "docker images": Program("-a -q --all --quiet --no-trunc --digests --format=TEXT --filter=TEXT", operands="text"),
    "docker logs": Program("-t -n= --tail= --since=TEXT --until=TEXT --timestamps --details", operands="targets"),
    **{f"tar {letters}": Program("") for letters in "-tf tf -tzf tzf -tvf tvf -tzvf tzvf -tvzf".split()},
    "unzip -l": Program(""),
    # only to this machine, and nothing is sent with it
    "curl": Program(
        """-s -S -f -i -I -v -k -w=TEXT -m= -o=NULL --silent --show-error --fail --include --head --verbose --insecure
        --write-out=TEXT --max-time= --connect-timeout= --output=NULL --retry= --retry-delay= --retry-connrefused
        --compressed --http1.1 --no-progress-meter""",
        operands="local",
    ),
    "seq": Program("-f=TEXT -s=TEXT -w --format=TEXT --separator=TEXT --equal-width", operands="text"),
    "sleep": Program("", operands="text"),
    # making things inside the workspace
    "mkdir": Program("-p -v --parents --verbose", operands="written"),
    "touch": Program("-a -c -m --no-create", operands="written"),
    "rmdir": Program("-p -v --parents --verbose --ignore-fail-on-non-empty", operands="written"),
    "tee": Program("-a --append", operands="written"),
    "cp": Program("-r -R -a -p -v -f -n -u --recursive --archive --verbose --force --no-clobber", operands="moved"),
    "mv": Program("-v -f -n -u --verbose --force --no-clobber", operands="moved"),
    "rm": Program("-r -R -f -v -d --recursive --force --verbose --dir", operands="written"),
    # git, looking only
    "git status": Program(
        """-s -b -v -z -u[=] --short --branch --show-stash --porcelain[=] --long --verbose
        --untracked-files[=] --ignore-submodules[=] --ignored[=] --column[=] --no-column --ahead-behind
        --no-ahead-behind --renames --no-renames --find-renames[=]"""
    ),
    "git diff": Program(_DIFF),
    "git log": Program(f"{_LOG} {_DIFF}"),
    "git show": Program(f"{_LOG} {_DIFF}"),
    "git whatchanged": Program(f"{_LOG} {_DIFF}"),
    "git reflog": Program(_LOG, operands="none"),
    "git reflog show": Program(_LOG),
    "git shortlog": Program(
        "-n -s -e -w[=] -c --numbered --summary --email --group= --format=TEXT --no-merges --all"
    ),
    "git branch": Program(
        """-a -r -v -l -i -q --all --remotes --list --show-current --verbose --abbrev[=] --no-abbrev
        --color[=] --no-color --column[=] --no-column --sort= --ignore-case --format=TEXT --contains=
        --no-contains= --points-at=""",
        operands="none",
    ),
    "git branch --list": Program("-a -r -v --sort= --format=TEXT --color[=] --no-color --column[=]", operands="text"),
    "git branch --merged": Program("-a -r -v --sort= --format=TEXT", operands="text"),
    "git branch --no-merged": Program("-a -r -v --sort= --format=TEXT", operands="text"),
    "git tag": Program("-l -n[=] --list --sort= --format=TEXT --column[=] --contains= --points-at=", operands="none"),
    "git config --get-regexp": Program("", operands="text"),
    "git tag --list": Program("-n[=] --sort= --format=TEXT --column[=]", operands="text"),
    "git tag -l": Program("-n[=] --sort= --format=TEXT --column[=]", operands="text"),
    "git rev-parse": Program(
        """-q --verify --quiet --short[=] --abbrev-ref[=] --symbolic --symbolic-full-name --all
        --branches[=] --tags[=] --remotes[=] --show-toplevel --show-prefix --show-cdup
        --show-superproject-working-tree --git-dir --absolute-git-dir --git-common-dir --is-inside-git-dir
        --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-object-format[=]
        --revs-only --no-revs --flags --no-flags --since=TEXT"""
    ),
    "git rev-list": Program(_LOG + " --count --objects --disk-usage[=]"),
    "git ls-files": Program(
        """-c -d -m -o -i -s -u -k -z -t -v -f -x=TEXT --cached --deleted --modified --others --ignored
        --stage --unmerged --killed --exclude=TEXT --exclude-standard --directory --no-empty-directory
        --eol --full-name --error-unmatch --abbrev[=] --format=TEXT --recurse-submodules --deduplicate"""
    ),
    "git ls-tree": Program("-d -r -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev[=]"),
    "git blame": Program(
        """-b -l -t -s -e -f -n -p -w -c -M[=] -C[=] -L=TEXT --root --show-stats --date=TEXT --score-debug
        --show-name --show-number --porcelain --line-porcelain --show-email --since=TEXT --reverse
        --first-parent --color-lines --color-by-age --abbrev[=] --ignore-rev= --no-progress"""
    ),
    "git describe": Program(
        """--all --tags --contains --abbrev[=] --candidates= --exact-match --debug --long --match=TEXT
        --exclude=TEXT --always --first-parent --dirty[=] --broken[=]""",
        operands="text",
    ),
    "git grep": Program(
        """-a -i -w -v -h -H -E -G -P -F -n -l -L -z -o -c -p -W -q -A= -B= -C= -m= -e=TEXT -I --cached
        --untracked --text --ignore-case --word-regexp --invert-match --extended-regexp --basic-regexp
        --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only
        --files-without-match --only-matching --count --color[=] --no-color --break --heading
        --show-function --context= --after-context= --before-context= --function-context --max-depth=
        --recursive --no-textconv --all-match --and --or --not --quiet""",
        operands="text paths",
        instead="-e",
    ),
    "git cat-file": Program("-t -s -e -p --allow-unknown-type", operands="text"),
    "git merge-base": Program("-a --all --octopus --independent --is-ancestor --fork-point", operands="text"),
    "git show-ref": Program(
        "-d -s -q --head --heads --tags --verify --dereference --hash[=] --abbrev[=]", operands="text"
    ),
    "git for-each-ref": Program("--count= --sort= --format=TEXT --points-at= --merged= --contains=", operands="text"),
    "git name-rev": Program("--tags --refs=TEXT --all --name-only --always", operands="text"),
    "git check-ignore": Program("-q -v -z -n --quiet --verbose --non-matching --no-index"),
    "git diff-tree": Program(_DIFF + " -r -t --root -m -c --cc --no-commit-id --pretty[=]TEXT"),
    "git count-objects": Program("-v -H --verbose --human-readable", operands="none"),
    "git remote": Program("-v --verbose", operands="none"),
    "git remote get-url": Program("--all --push", operands="text"),
    "git stash list": Program(_LOG, operands="none"),
    "git stash show": Program(_DIFF, operands="text"),
    "git worktree list": Program("-v --porcelain -z", operands="none"),
    "git config --get": Program("", operands="text"),
    "git config --list": Program("-z --name-only --show-origin --show-scope --local", operands="none"),
    "git config user.name": Program("", operands="none"),
    "git config user.email": Program("", operands="none"),
    "git --version": Program("", operands="none"),
    # git, changing the index only
    "git add": Program("-A -u -n -v -N --all --update --dry-run --verbose --intent-to-add --no-all"),
    "git commit": Program(
        """-m=TEXT -a -q -v -s --message=TEXT --all --quiet --verbose --signoff --amend --no-edit --allow-empty
        --dry-run --short --no-status --date=TEXT --author=TEXT --fixup=TEXT --squash=TEXT"""
    ),
    "git switch": Program("-c=TEXT -q -d --create=TEXT --quiet --detach --no-guess --track", operands="refs"),
    "git checkout": Program("-b=TEXT -q -t --quiet --track --detach --no-guess", operands="refs"),
    "git stash": Program("-u -k -q --include-untracked --keep-index --quiet", operands="none"),
    "git stash push": Program("-u -k -q -m=TEXT --message=TEXT --include-untracked --keep-index --staged -S"),
    "git stash pop": Program("-q --index --quiet", operands="targets"),
    "git stash apply": Program("-q --index --quiet", operands="targets"),
    "git merge": Program(
        "-m=TEXT -q --no-ff --ff-only --ff --squash --no-commit --no-edit --abort --continue --quiet --stat", "refs"
    ),
    "git rebase": Program("-q --continue --abort --skip --quiet --autostash --onto=TEXT --stat", operands="refs"),
    "git restore --staged": Program("-q --quiet"),
    "git reset": Program("-q -N --quiet --soft --mixed --intent-to-add"),
    "git mv": Program("-v -n -k", operands="moved"),
    "git worktree add": Program("-b=TEXT -q --detach --quiet", operands="written"),
    "git worktree prune": Program("-n -v", operands="none"),
    # checking and testing: these run the project's own code, or settings that are code
    "pytest": Program(_PYTEST, operands="inside"),
    "python -m pytest": Program(_PYTEST, operands="inside"),
    "python3 -m pytest": Program(_PYTEST, operands="inside"),
    "python --version": Program("", operands="none"),
    "python3 --version": Program("", operands="none"),
    "python -V": Program("", operands="none"),
    "python3 -V": Program("", operands="none"),
    "ruff check": Program(_RUFF_CHECK, operands="inside"),
    "ruff format": Program(
        """--check --diff -n --no-cache --respect-gitignore --exclude= --force-exclude --line-length=
        --isolated --preview --no-preview --target-version= -v --verbose -q --quiet -s --silent -h --help
        --range= --color=""",
        operands="inside",
    ),
    "ruff --version": Program("", operands="none"),
    "mypy": Program(
        """-v -V -h -p= -m= --strict --ignore-missing-imports --follow-imports= --python-version=
        --platform= --no-incremental --warn-unused-ignores --warn-redundant-casts --warn-return-any
        --warn-unreachable --warn-unused-configs --disallow-untyped-defs --disallow-untyped-calls
        --disallow-any-generics --disallow-any-explicit --disallow-incomplete-defs --check-untyped-defs
        --no-implicit-optional --no-implicit-reexport --strict-equality --show-error-context
        --show-column-numbers --show-error-end --show-error-codes --hide-error-codes --pretty --no-pretty
        --no-color-output --no-error-summary --show-absolute-path --explicit-package-bases
        --namespace-packages --package= --module= --exclude= --disable-error-code= --enable-error-code=
        --allow-untyped-defs --implicit-optional --version --help""",
        operands="inside",
    ),
    "pyright": Program(
        "-v -h --verbose --stats --warnings --outputjson --level= --pythonversion= --version --help", "inside"
    ),
    "npm test": Program(_NPM, operands="targets", after=_NPM_AFTER),
    "npm run": Program(_NPM, operands="scripts", after=_NPM_AFTER),
    "npm ci": Program("--silent --ignore-scripts --no-audit --no-fund --prefer-offline --offline", operands="none"),
    "npm install": Program(
        "--silent --ignore-scripts --no-audit --no-fund --prefer-offline --offline", operands="none"
    ),
    "npm i": Program("--silent --ignore-scripts --no-audit --no-fund --prefer-offline --offline", operands="none"),
    "npm audit": Program("--json --omit= --production --audit-level=", operands="none"),
    "npm view": Program("--json", operands="targets"),
    "npm info": Program("--json", operands="targets"),
    "npm explain": Program("--json", operands="targets"),
    "npm pack --dry-run": Program("--json --silent", operands="none"),
    "npm root": Program("-g", operands="none"),
    "npm outdated": Program("--json --long", operands="text"),
    "pnpm install": Program("--frozen-lockfile --offline --prefer-offline --silent", operands="none"),
    "pnpm run": Program(
        "-r -s --silent --recursive --if-present --filter=TEXT", operands="scripts", after=_NPM_AFTER
    ),
    "pnpm test": Program("-r -s --silent --recursive", operands="targets", after=_NPM_AFTER),
    "pnpm build": Program("-r --filter=TEXT", operands="none"),
    "pnpm lint": Program("-r --filter=TEXT", operands="none"),
    "yarn install": Program("--frozen-lockfile --immutable --offline --silent", operands="none"),
    "yarn run": Program("-s --silent", operands="scripts"),
    "yarn test": Program("-s --silent --coverage", operands="targets"),
    "yarn build": Program("", operands="none"),
    "yarn lint": Program("", operands="none"),
    "bun install": Program("--frozen-lockfile", operands="none"),
    "bun test": Program("--bail --coverage -t=TEXT", operands="inside"),
    "bun run": Program("", operands="scripts"),
    "uv sync": Program("-q --frozen --locked --all-extras --dev --no-dev --extra=TEXT --group=TEXT", operands="none"),
    "uv lock": Program("-q --check --upgrade -U", operands="none"),
    "uv pip list": Program("--format=TEXT --outdated", operands="none"),
    "uv pip show": Program("", operands="targets"),
    "uv pip freeze": Program("", operands="none"),
    "uv pip check": Program("", operands="none"),
    "uv pip tree": Program("", operands="none"),
    "uv pip compile": Program("-q --quiet -U --upgrade --universal --generate-hashes", operands="inside"),
    "uv pip install": Program(_UV_PIP, operands="targets"),
    "uv pip sync": Program("-q --quiet --dry-run", operands="inside"),
    "uv pip uninstall": Program("-q --quiet --dry-run", operands="targets"),
    "uv --version": Program("", operands="none"),
    "pip install": Program(_UV_PIP, operands="targets"),
    "pip3 install": Program(_UV_PIP, operands="targets"),
    "pip list": Program("--format=TEXT --outdated", operands="none"),
    "pip show": Program("", operands="targets"),
    "pip freeze": Program("", operands="none"),
    "pip --version": Program("", operands="none"),
    "tox": Program("-e=TEXT -q -v -p --parallel -r --recreate", operands="none"),
    "nox": Program("-s=TEXT -l --list -R -r --reuse-existing-virtualenvs", operands="none"),
    "black": Program("--check --diff -q -v --quiet --verbose -l= --line-length=", operands="inside"),
    "isort": Program("--check --check-only --diff -q -v --profile=TEXT", operands="inside"),
    "flake8": Program("--max-line-length= --select= --ignore= --statistics --count", operands="inside"),
    "python -m unittest": Program("-v -q -f -b -k=TEXT", operands="targets"),
    "python3 -m unittest": Program("-v -q -f -b -k=TEXT", operands="targets"),
    "python -m mypy": Program("--strict", operands="inside"),
    "python3 -m mypy": Program("--strict", operands="inside"),
    "python -m py_compile": Program("-q", operands="inside"),
    "python3 -m py_compile": Program("-q", operands="inside"),
    "python -m compileall": Program("-q -f", operands="inside"),
    "python3 -m compileall": Program("-q -f", operands="inside"),
    "python -m venv": Program("--upgrade-deps", operands="written"),
    "python3 -m venv": Program("--upgrade-deps", operands="written"),
    "uv venv": Program("-q --quiet", operands="written"),
    "python -m json.tool": Program("", operands="one"),
    "python3 -m json.tool": Program("", operands="one"),
    "tsc": _TOOL,
    "tsgo": _TOOL,
    "tsx": _SCRIPTS,
    "ts-node": _SCRIPTS,
    "eslint": _TOOL,
    "prettier": _TOOL,
    "vitest": _TOOL,
    "jest": _TOOL,
    "mocha": _TOOL,
    "biome": _TOOL,
    "gradle": Program(_GRADLE, operands="scripts"),
    "./gradlew": Program(_GRADLE, operands="scripts"),
    "mvn": Program(_MVN, operands="scripts", style="words"),
    "./mvnw": Program(_MVN, operands="scripts", style="words"),
    "npm ls": Program("-a -l --all --long --depth= --json --parseable --omit=", operands="text"),
    "npm --version": Program("", operands="none"),
    "npm -v": Program("", operands="none"),
    "node --version": Program("", operands="none"),
    "node -v": Program("", operands="none"),
    "cargo test": Program(
        _CARGO,
        operands="targets",
        after="""--nocapture --no-capture --show-output --test-threads= --ignored --include-ignored --exact
        --list -q --quiet --skip=""",
    ),
    "cargo check": Program(_CARGO, operands="none"),
    "cargo build": Program(_CARGO, operands="none"),
    "cargo clippy": Program(_CARGO, operands="none", after="-D= -W= -A= -F="),
    "cargo fmt": Program("--all --check -p= --package= -q --quiet -v --verbose", operands="none"),
    "cargo tree": Program(_CARGO + " -i= -d -e= --depth= --prefix= --duplicates --invert= --edges=", operands="none"),
    "cargo run": Program(_CARGO, operands="inside", after="*"),
    "cargo doc": Program(_CARGO + " --no-deps", operands="none"),
    "cargo bench": Program(_CARGO, operands="targets"),
    "cargo update": Program("-p= --dry-run -q --quiet", operands="none"),
    "cargo metadata": Program("--format-version= --no-deps --offline --locked --frozen -q", operands="none"),
    "cargo --version": Program("", operands="none"),
    "rustc --version": Program("", operands="none"),
    "go test": Program(_GO, operands="inside", style="words"),
    "go build": Program(_GO, operands="inside", style="words"),
    "go vet": Program("-v -n -x -json -c= -tags=TEXT", operands="inside", style="words"),
    "go list": Program("-m -f=TEXT -json -deps -e -test -u -versions -tags=TEXT", operands="inside", style="words"),
    "go run": Program(_GO, operands="inside", style="words"),
    "go mod tidy": Program("-v", operands="none", style="words"),
    "go mod download": Program("", operands="none", style="words"),
    "go mod verify": Program("", operands="none", style="words"),
    "go fmt": Program("-n -x", operands="inside", style="words"),
    "go doc": Program("-all -short -src", operands="text", style="words"),
    "go version": Program("", operands="none", style="words"),
    "go env": Program("-json -changed", operands="text", style="words"),
    "gofmt": Program("-l -d -s", operands="inside", style="words"),
    "make": Program(_MAKE, operands="scripts"),
}

# Whatever they are given, they only print: no option of theirs runs, writes or sends anything.
HARMLESS = frozenset(
    """ls cat tac nl head tail wc stat du df basename dirname realpath readlink md5sum sha1sum sha256sum sha512sum
    cksum cmp comm od cut tr paste join fold fmt rev expand unexpand grep egrep fgrep echo : true false type which id
    groups seq base64 printf""".split()
)
# They run the project's own code, so they may lie in the workspace themselves.
PROJECT = frozenset(
    """pytest python python3 ruff mypy pyright npm npx pnpm yarn bun uv pip pip3 tox nox black isort flake8 tsc tsgo
    tsx ts-node eslint prettier vitest jest mocha biome gradle ./gradlew mvn ./mvnw cargo go gofmt make""".split()
)
# Where only looking is allowed, these must be the system's own programs, and not the project's.
VERSIONS = frozenset(
    f"{program} {option}"
    for program, options in {
        "python": "--version -V",
        "python3": "--version -V",
        "npm": "--version -v",
        "ruff": "--version",
        "uv": "--version",
        "pip": "--version",
    }.items()
    for option in options.split()
)
INTO_A_VENV = frozenset({"pip install", "pip3 install", "uv pip install", "uv pip sync", "uv pip uninstall"})
# Commands of the shell itself: no file is looked up for them.
BUILTINS = frozenset(
    """echo printf pwd true false cd test : exit return break continue wait set read type command export jobs kill
    source .""".split()
)
# git commands that change something: hooks and filters are part of what they do.
GIT_CHANGING = frozenset(
    """add,commit,switch,checkout,stash,stash push,stash pop,stash apply,merge,rebase,mv,restore,reset,worktree
    add,worktree prune,tag""".replace("\n    ", " ").split(",")
) - {"stash list", "stash show"}


def _marked(tables: Mapping[str, Program]) -> Mapping[str, Program]:
    return {
        name: replace(table, unknown=name in HARMLESS, project=name.split()[0] in PROJECT)
        for name, table in tables.items()
    }


PROGRAMS: Mapping[str, Program] = _marked(_TABLES)

# Options that may stand between a program and its subcommand, where they change nothing that matters.
BEFORE_SUBCOMMAND: Mapping[str, Program] = {
    "git": Program("--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects"),
    "npm": Program("-s --silent"),
    "cargo": Program("-q -v --quiet --verbose --locked --offline --frozen --color="),
}

# They take the words after them as a command, or run what they read: only a rule that spells the whole
# command out allows them, and rules that ask or deny look through them.
WRAPPERS = frozenset(
    """ash bash busybox bwrap catchsegv chroot chrt command builtin coproc cpulimit csh dash doas env eval
    exec expect fakeroot fish firejail flock gdb ionice ksh ltrace mksh nice nohup npx nsenter numactl
    parallel pkexec proot rbash run-parts runuser schedtool script sem setarch setpriv setsid sh ssh
    start-stop-daemon stdbuf strace su sudo systemd-run taskset tclsh tcsh time timeout torsocks toybox
    unbuffer unshare uvx valgrind watch xargs xvfb-run yash zsh rtk entr hyperfine""".split()
)

# They run whatever text they are given, in a language that rules do not read.
INTERPRETERS = frozenset(
    """awk gawk mawk nawk bun deno ed emacs ex gdb irb java jshell lua node nodejs nvim perl php pip pip3
    pipx powershell psql pwsh python python2 python3 Rscript ruby sbcl sqlite3 vi view vim wish""".split()
)

# They change what later words of the same line mean.
SHELL_STATE = frozenset(
    """. [ alias bg bind builtin cd complete compgen compopt coproc declare dirs enable eval exec export
    fc fg getopts hash history let local mapfile popd printf pushd read readarray readonly set shopt
    source suspend test trap typeset unalias unset wait""".split()
)
