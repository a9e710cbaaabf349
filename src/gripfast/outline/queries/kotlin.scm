(class_declaration (class_body) @body) @class
(class_declaration (enum_class_body) @body) @enum
(class_declaration) @class
(object_declaration (class_body) @body) @class
(object_declaration) @class
(companion_object (class_body) @body) @class
(function_declaration (function_body) @body) @function
(function_declaration) @function
(secondary_constructor "constructor" @name (block)? @body) @method
(type_alias (identifier) @name) @type
(source_file (property_declaration (variable_declaration (identifier) @name)) @variable)
