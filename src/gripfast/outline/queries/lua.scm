(function_declaration) @function
(assignment_statement (variable_list name: (_) @name) (expression_list value: (function_definition body: (_)? @body))) @function
(field name: (_) @name value: (function_definition body: (_)? @body)) @method
(chunk (variable_declaration (assignment_statement (variable_list . name: (_) @name))) @variable)
(chunk (assignment_statement (variable_list . name: (_) @name)) @variable)
