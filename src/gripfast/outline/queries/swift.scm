(class_declaration) @class
(protocol_declaration) @interface
(function_declaration) @function
(protocol_function_declaration) @function
(init_declaration) @method
(deinit_declaration) @method
(subscript_declaration) @method
(typealias_declaration) @type
(source_file (property_declaration) @variable)
(property_declaration computed_value: (_) @body) @method
