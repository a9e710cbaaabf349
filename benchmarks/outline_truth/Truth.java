// What javac's parser finds in the files named on standard input: one JSON object a line.

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

public class Truth {
    public static void main(String[] given) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String path;
        while ((path = lines.readLine()) != null) {
            boolean[] broken = {false};
            JavacTask task = (JavacTask) compiler.getTask(null, files, d -> broken[0] |= d.getKind() == javax.tools.Diagnostic.Kind.ERROR,
                    List.of("-proc:none"), null, files.getJavaFileObjects(new File(path)));
            for (CompilationUnitTree unit : task.parse()) {
                if (!broken[0]) {
                    print(path, unit, Trees.instance(task).getSourcePositions());
                }
            }
        }
    }

    static void print(String path, CompilationUnitTree unit, SourcePositions at) {
        List<String> rows = new ArrayList<>();
        List<String> around = new ArrayList<>();
        new TreeScanner<Void, Void>() {
            void add(String kind, String name, Tree tree) {
                long start = at.getStartPosition(unit, tree), end = at.getEndPosition(unit, tree);
                if (end > start && !name.isEmpty()) {
                    rows.add(String.format("[\"%s\",\"%s\",%d,%d]", kind, name, unit.getLineMap().getLineNumber(start),
                            unit.getLineMap().getLineNumber(end - 1)));
                }
            }

            @Override public Void visitClass(ClassTree tree, Void none) {
                add("class", tree.getSimpleName().toString(), tree);
                around.add(tree.getSimpleName().toString());
                super.visitClass(tree, none);
                around.remove(around.size() - 1);
                return null;
            }

            @Override public Void visitMethod(MethodTree tree, Void none) {
                String name = tree.getName().toString();
                add("method", name.equals("<init>") ? around.get(around.size() - 1) : name, tree);
                return super.visitMethod(tree, none);
            }
        }.scan(unit, null);
        System.out.println("{\"file\":\"" + path + "\",\"definitions\":[" + String.join(",", rows) + "]}");
    }
}
