// What the TypeScript compiler's parser finds in the files named on standard input: one JSON object a line.
// usage: node truth.mjs PATH_OF_THE_TYPESCRIPT_PACKAGE
import fs from 'node:fs';
import { createRequire } from 'node:module';

const ts = createRequire(import.meta.url)(process.argv[2]);
const kinds = new Map([
  [ts.SyntaxKind.FunctionDeclaration, 'function'],
  [ts.SyntaxKind.ClassDeclaration, 'class'],
  [ts.SyntaxKind.MethodDeclaration, 'method'],
  [ts.SyntaxKind.MethodSignature, 'method'],
  [ts.SyntaxKind.Constructor, 'method'],
  [ts.SyntaxKind.GetAccessor, 'method'],
  [ts.SyntaxKind.SetAccessor, 'method'],
  [ts.SyntaxKind.InterfaceDeclaration, 'interface'],
  [ts.SyntaxKind.TypeAliasDeclaration, 'type'],
  [ts.SyntaxKind.EnumDeclaration, 'enum'],
]);

for (const path of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  if (!fs.statSync(path).isFile()) continue;
  const text = fs.readFileSync(path, 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  if (file.parseDiagnostics.length) continue;
  const line = (position) => text.slice(0, position).split('\n').length;
  const definitions = [];
  const add = (kind, name, node) => definitions.push([kind, name, line(node.getStart()), line(node.getEnd() - 1)]);
  const visit = (node) => {
    const kind = kinds.get(node.kind);
    if (node.kind === ts.SyntaxKind.Constructor) add(kind, 'constructor', node);
    else if (kind && node.name) add(kind, node.name.getText(), node);
    if (ts.isVariableStatement(node) && node.modifiers?.some((m) => m.kind === ts.SyntaxKind.ExportKeyword)) {
      for (const each of node.declarationList.declarations) {
        if (ts.isIdentifier(each.name)) add('variable', each.name.getText(), node);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  console.log(JSON.stringify({ file: path, definitions }));
}
