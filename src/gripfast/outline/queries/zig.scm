(function_declaration) @function
(source_file (variable_declaration . (identifier) @name (struct_declaration)) @class)
(source_file (variable_declaration . (identifier) @name) @variable)
(source_file (variable_declaration "pub" . ["const" "var"] . (identifier) @name) @variable)
(source_file (variable_declaration . ["const" "var"] . (identifier) @name) @variable)
(test_declaration (string) @name (block) @body) @test
