; inherits: c
(template_declaration [(class_specifier) (struct_specifier) (function_definition) (declaration) (alias_declaration) (concept_definition)] @inner) @wrap
(class_specifier body: (_)) @class
(namespace_definition) @module
(alias_declaration) @type
(concept_definition) @type
(field_declaration declarator: [
  (function_declarator)
  (pointer_declarator declarator: (function_declarator))
  (reference_declarator (function_declarator))]) @method
