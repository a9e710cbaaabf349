"""What stands for a form in a collapsed view, and the name it goes by."""

from __future__ import annotations

import pytest

from gripfast.lisp.dialects import CLOJURE, COMMON_LISP, EMACS_LISP, SCHEME, Dialect, dialect_of
from gripfast.lisp.forms import Form, understand
from gripfast.lisp.scanner import scan


def form(text: str, dialect: Dialect = COMMON_LISP) -> Form:
    return understand(text, next(scan(text, dialect)), dialect)


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ('(defun f (a b) "Doc." (+ a b))', '(defun f (a b) "Doc." ...)', "f"),
        ('(defun f (a)\n  "First.\n  Second."\n  a)', '(defun f (a) "First. ..." ...)', "f"),
        ('(defun f (a)\n  "\n  First.\n  Second."\n  a)', '(defun f (a) "First. ..." ...)', "f"),
        ('(defun f () "a value")', "(defun f () ...)", "f"),
        ('(defun f (a) (declare (fixnum a)) "Doc." a)', '(defun f (a) "Doc." ...)', "f"),
        ("(defun f nil (g (h)))", "(defun f nil ...)", "f"),
        ("(DEFUN Foo (X)\n X)", "(DEFUN Foo (X) ...)", "Foo"),
        ("(defun f (a ; first\n   &key\n   b)\n a)", "(defun f (a &key b) ...)", "f"),
        ('(defun f (&optional (s "x ; y\nz")) s)', '(defun f (&optional (s "x ; y...")) ...)', "f"),
        ("(defun (setf name) (v x) (g v x))", "(defun (setf name) (v x) ...)", "(setf name)"),
        ("(defun p:f (a) a)", "(defun p:f (a) ...)", "p:f"),
        ("(cl:defun f (a) a)", "(cl:defun f (a) ...)", "f"),
        ("(defmacro m ((v l) &body b) `(x ,v))", "(defmacro m ((v l) &body b) ...)", "m"),
        ("(defmethod m :around ((x foo) y) x)", "(defmethod m :around ((x foo) y) ...)", "m"),
        ("(defmethod m progn ((x foo)) x)", "(defmethod m progn ((x foo)) ...)", "m"),
        ('(defgeneric g (x) (:documentation "Words.\nMore."))', '(defgeneric g (x) "Words. ..." ...)', "g"),
        ("(defgeneric g (x))", "(defgeneric g (x))", "g"),
        ("(defclass c (a b) ((s :initarg :s)))", "(defclass c (a b) (s) ...)", "c"),
        ('(defclass c () (s) (:documentation "Words."))', '(defclass c () (s) "Words." ...)', "c"),
        ("(defclass c () ())", "(defclass c () ())", "c"),
        (
            f"(defclass c () ({' '.join(f'(a-slot-{n} :initform {n})' for n in range(40))}))",
            f"(defclass c () ({' '.join(f'a-slot-{n}' for n in range(21))} ...) ...)",
            "c",
        ),
        (
            '(define-condition e (error) () (:documentation "Bad."))',
            '(define-condition e (error) () "Bad." ...)',
            "e",
        ),
        ("(defstruct s a b)", "(defstruct s ...)", "s"),
        ('(defstruct (s (:conc-name x-)) "Doc." a)', '(defstruct (s (:conc-name x-)) "Doc." ...)', "s"),
        ("(defvar *x*)", "(defvar *x*)", "*x*"),
        ("(defvar *x* 10)", "(defvar *x* 10)", "*x*"),
        ('(defvar *x* "a value")', '(defvar *x* "a value")', "*x*"),
        ('(defparameter *x* (list 1 2) "Doc.")', '(defparameter *x* (list 1 2) "Doc.")', "*x*"),
        (f'(defparameter *x* (list {"1 " * 30}) "Doc.")', '(defparameter *x* ... "Doc.")', "*x*"),
        ("(defconstant +x+ #.(floor (ash 1 (1- (long-name n-x n-y)))))", "(defconstant +x+ ...)", "+x+"),
        ("(defconstant +x+ #xFF)", "(defconstant +x+ #xFF)", "+x+"),
        ("(deftype index () '(integer 0))", "(deftype index () ...)", "index"),
        ("(defpackage #:my-pkg (:use :cl))", "(defpackage #:my-pkg (:use :cl))", "my-pkg"),
        (
            "(defpackage :p (:use :cl) (:import-from :a :b) (:export #:one\n #:two) (:export #:three))",
            "(defpackage :p (:use :cl) (:export #:one #:two) (:export #:three) ...)",
            "p",
        ),
        ('(asdf:defsystem "sys" :depends-on ())', '(asdf:defsystem "sys" :depends-on ())', "sys"),
        (
            '(defsystem "s" :components ((:file "a")\n (:module "m" :components ((:file "b"))) (:file "c")))',
            '(defsystem "s" :components (a (m b) c))',
            "s",
        ),
        ("(define-route home (:get) (page))", "(define-route home (:get) ...)", "home"),
        ("(test adds (is (= 1 1)))", "(test adds ...)", "adds"),
        ("#+sbcl\n(defun f (a) a)", "#+sbcl (defun f (a) ...)", "f"),
        ("#+(or a ; no\n b) (defun f (a) a)", "#+(or a b) (defun f (a) ...)", "f"),
        ("(defun |odd (name| (a) a)", "(defun |odd (name| (a) ...)", "|odd (name|"),
    ],
)
def test_a_definition_is_one_line_with_its_signature_and_the_first_line_of_its_words(
    source: str, line: str, name: str
) -> None:
    found = form(source)
    assert (found.kind, found.line, found.name) == ("definition", line, name)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("(progn (print 1))", "(progn ...)"),
        ('(format t "hello")', "(format ...)"),
        ("(run)", "(run)"),
        ("(declaim (optimize speed))", "(declaim (optimize speed))"),
        (f"(declaim (inline {'a-long-name ' * 10}))", "(declaim ...)"),
        ("(default-thing a b)", "(default-thing ...)"),
        ("(defun)", "(defun)"),
        ("()", "()"),
        ("((a b) c)", "((a b) c)"),
        ("atom", "atom"),
        ("'(a b)", "'(a ...)"),
        ('#.(error "x")', '#.(error "x")'),
    ],
)
def test_other_forms_show_their_operator_and_some_remarks_in_full(source: str, line: str) -> None:
    found = form(source)
    assert (found.kind == "definition", found.line) == (False, line)


@pytest.mark.parametrize(
    ("dialect", "source", "line", "name"),
    [
        (
            CLOJURE,
            "(ns my.app\n  (:require [clojure.string :as str] [clojure.set :as set] [re-frame.core :as rf]))",
            "(ns my.app ...)",
            "my.app",
        ),
        (CLOJURE, "(rf/reg-event-db ::init (fn [db _] db))", "(rf/reg-event-db ::init ...)", "init"),
        (CLOJURE, "(reg-sub :user/name (fn [db] (:name db)))", "(reg-sub :user/name ...)", "user/name"),
        (CLOJURE, "#?(:clj (defn a [x] 1) :cljs 2)", "#?(:clj ...)", ""),
        (SCHEME, "(struct point (x y) #:transparent)", "(struct point (x y) ...)", "point"),
        (EMACS_LISP, '(use-package magit\n  :bind ("C-x g" . magit-status))', "(use-package magit ...)", "magit"),
        (EMACS_LISP, "(add-hook 'prog-mode-hook #'x)", "(add-hook 'prog-mode-hook ...)", "prog-mode-hook"),
        (EMACS_LISP, "(with-eval-after-load 'org (foo))", "(with-eval-after-load 'org ...)", ""),
        (COMMON_LISP, "(add-route :index (lambda () 1))", "(add-route :index ...)", "index"),
    ],
)
def test_the_name_that_a_form_is_about_is_shown_and_found(
    dialect: Dialect, source: str, line: str, name: str
) -> None:
    found = form(source, dialect)
    assert (found.line, found.name) == (line, name)


def test_definitions_inside_wrappers_are_found_at_any_reasonable_depth() -> None:
    text = "(eval-when (:execute)\n  (let ((x 1))\n    (defun f (a) a)\n    (print x))\n  #-a (defvar *v* 1))"
    found = form(text)
    assert found.line == "(eval-when ...)"
    assert [inner.line for inner in found.inside] == ["(let ...)", "#-a (defvar *v* 1)"]
    assert [inner.name for inner in found.inside[0].inside] == ["f"]


def test_wrappers_nested_without_end_are_not_followed_without_end() -> None:
    deep = "(progn " * 50_000 + "(defun f ())" + ")" * 50_000
    assert form(deep).line == "(progn ...)"


@pytest.mark.parametrize(
    ("source", "spellings"),
    [
        ("(defun f ())", ("f",)),
        ("(defun pkg:f ())", ("pkg:f", "f")),
        ("(defun pkg::f ())", ("pkg::f", "f")),
        ("(defun (setf f) (v))", ("(setf f)", "f")),
        ("(defun (setf p:f) (v))", ("(setf p:f)", "p:f", "f")),
    ],
)
def test_a_name_can_be_asked_for_with_and_without_its_package_and_setf(
    source: str, spellings: tuple[str, ...]
) -> None:
    assert form(source).spellings() == spellings


def test_a_long_lambda_list_is_clipped_and_still_closed() -> None:
    line = form(f"(defun f ({'argument ' * 60}) 1)").line
    assert line.startswith("(defun f (argument argument")
    assert line.endswith(" ...) ...)")
    assert len(line) < 260


def test_what_is_clipped_has_its_brackets_closed() -> None:
    line = form(f"(defun f (&key ((:first a) (list {'x ' * 120})) b) 1)").line
    assert line.endswith("x ...))) ...)")


@pytest.mark.parametrize(
    ("dialect", "source", "line", "name"),
    [
        (EMACS_LISP, '(defun my-f (a)\n  "Doc."\n  (interactive)\n  ?\\( a)', '(defun my-f (a) "Doc." ...)', "my-f"),
        (EMACS_LISP, '(defcustom my-x ?\\) "Doc." :type 1)', '(defcustom my-x ?\\) "Doc." ...)', "my-x"),
        (EMACS_LISP, "(cl-defun f (a &key b) [a ?\\]])", "(cl-defun f (a &key b) ...)", "f"),
        (SCHEME, "(define (f x . y) (g x))", "(define (f x . y) ...)", "f"),
        (SCHEME, "(define x 10)", "(define x 10)", "x"),
        (SCHEME, "(define-record-type point (make x) p?)", "(define-record-type point (make x) ...)", "point"),
        (CLOJURE, '(defn f "Doc." [a b] (+ a b))', '(defn f "Doc." [a b] ...)', "f"),
        (CLOJURE, "(defn- ^:private f [{:keys [a]}] a)", "(defn- ^:private f [{:keys [a]}] ...)", "f"),
        (CLOJURE, "(def x \\()", "(def x \\()", "x"),
    ],
)
def test_other_lisps_have_their_own_definitions(dialect: Dialect, source: str, line: str, name: str) -> None:
    found = form(source, dialect)
    assert (found.kind, found.line, found.name) == ("definition", line, name)


def test_the_suffix_tells_the_dialect() -> None:
    expected = {
        "a.lisp a.LSP a.cl x/a.asd a.ros": COMMON_LISP,
        ".emacs.d/init.el": EMACS_LISP,
        "a.scm a.ss a.rkt": SCHEME,
        "a.clj a.cljs a.cljc a.edn": CLOJURE,
        "a.py lisp a.lisp.txt .lisp": None,
    }
    for names, dialect in expected.items():
        assert {dialect_of(name) for name in names.split()} == {dialect}
