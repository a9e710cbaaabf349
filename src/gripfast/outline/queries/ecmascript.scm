(export_statement declaration: (_) @inner) @wrap
(decorator) @mark
(class_declaration) @class
(function_declaration) @function
(generator_function_declaration) @function
(method_definition) @method
(_ (variable_declarator name: (identifier) @name value: [
  (arrow_function) @value (function_expression) @value (generator_function) @value])) @function
(_ (variable_declarator name: (identifier) @name value: (class) @value)) @class
(expression_statement (assignment_expression left: (member_expression) @name
  right: [(arrow_function) @value (function_expression) @value])) @function
(expression_statement (assignment_expression left: (member_expression) @name right: (class) @value)) @class
(pair key: (_) @name value: [(arrow_function body: (statement_block) @body) (function_expression) @value]) @method
(program (_ (variable_declarator name: (_) @name)) @variable)
(export_statement declaration: (_ (variable_declarator name: (_) @name)) @variable)
(export_statement "default" value: (_) @name) @variable
(call_expression
  function: [(identifier) @called (member_expression object: (identifier) @called)]
  arguments: (arguments . [(string) (template_string)] @name
    [(arrow_function) @value (function_expression) @value])
  (#any-of? @called "describe" "context" "suite" "it" "test" "specify")) @test
