// What go/parser finds in the files named on standard input: one JSON object a line.
package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
)

type row [4]any

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, lines.Text(), nil, parser.ParseComments)
		if err != nil {
			continue
		}
		rows := []row{}
		add := func(kind string, name string, node ast.Node) {
			if name != "_" {
				rows = append(rows, row{kind, name, set.PositionFor(node.Pos(), false).Line, set.PositionFor(node.End()-1, false).Line})
			}
		}
		for _, each := range file.Decls {
			switch d := each.(type) {
			case *ast.FuncDecl:
				add("function", d.Name.Name, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add("type", s.Name.Name, s)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add("value", name.Name, s)
						}
					}
				}
			}
		}
		out.Encode(map[string]any{"file": lines.Text(), "definitions": rows})
	}
}
