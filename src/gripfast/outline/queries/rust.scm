(attribute_item) @mark
(function_item) @function
(function_signature_item) @function
(struct_item) @class
(enum_item) @enum
(union_item) @class
(trait_item) @interface
(impl_item type: (_) @name) @impl
(mod_item) @module
(type_item) @type
(macro_definition) @macro
(source_file (const_item) @constant)
(source_file (static_item) @variable)
(mod_item body: (declaration_list (const_item) @constant))
(impl_item body: (declaration_list (const_item) @constant))
