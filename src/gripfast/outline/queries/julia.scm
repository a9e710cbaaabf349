(module_definition) @module
(function_definition (signature (call_expression . (_) @name)) @head) @function
(macro_definition (signature (call_expression . (_) @name)) @head) @function
(struct_definition (type_head) @name @head) @class
(abstract_definition (type_head) @name) @type
(assignment . (call_expression . (_) @name)) @function
(source_file (const_statement (assignment . (_) @name)) @constant)
