(namespace_declaration) @module
(file_scoped_namespace_declaration) @constant
(class_declaration) @class
(struct_declaration) @class
(record_declaration) @class
(interface_declaration) @interface
(enum_declaration) @enum
(delegate_declaration) @type
(method_declaration) @method
(constructor_declaration) @method
(destructor_declaration) @method
(operator_declaration operator: (_) @name) @method
(local_function_statement) @function
(property_declaration accessors: (_) @body) @method
(indexer_declaration accessors: (_) @body) @method
(property_declaration) @method
