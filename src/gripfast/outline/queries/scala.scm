(class_definition) @class
(object_definition) @class
(trait_definition) @interface
(enum_definition) @enum
(function_definition) @function
(function_declaration) @function
(given_definition) @variable
(type_definition) @type
(extension_definition) @impl
(compilation_unit (val_definition pattern: (_) @name) @variable)
(template_body (val_definition pattern: (_) @name) @variable)
