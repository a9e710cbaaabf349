(contract_declaration) @class
(interface_declaration) @interface
(library_declaration) @class
(function_definition) @function
(modifier_definition) @function
(struct_declaration) @class
(enum_declaration) @enum
(event_definition) @type
