(namespace_definition) @module
(class_declaration) @class
(interface_declaration) @interface
(trait_declaration) @class
(enum_declaration) @enum
(method_declaration) @method
(function_definition) @function
(program (const_declaration (const_element (name) @name)) @constant)
