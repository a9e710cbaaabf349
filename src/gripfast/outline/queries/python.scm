(decorated_definition definition: (_) @inner) @wrap
(class_definition) @class
(function_definition) @function
(module (expression_statement (assignment left: [(identifier) (pattern_list)] @name) @constant))
(module (type_alias_statement left: (_) @name) @type)
