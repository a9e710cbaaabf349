(function_statement (function_name) @name (script_block) @body) @function
(class_statement (simple_name) @name) @class
(class_method_definition (simple_name) @name (script_block) @body) @method
(enum_statement (simple_name) @name) @enum
