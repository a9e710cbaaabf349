(object_type_definition (name) @name (fields_definition)? @body) @class
(interface_type_definition (name) @name (fields_definition)? @body) @interface
(input_object_type_definition (name) @name (input_fields_definition)? @body) @class
(enum_type_definition (name) @name (enum_values_definition)? @body) @enum
(union_type_definition (name) @name) @type
(scalar_type_definition (name) @name) @type
(operation_definition (name) @name (selection_set) @body) @function
(fragment_definition (fragment_name) @name (selection_set) @body) @function
