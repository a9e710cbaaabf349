(function_definition) @function
(struct_specifier body: (_)) @class
(union_specifier body: (_)) @class
(enum_specifier body: (_)) @enum
(type_definition declarator: (_) @declarator) @type
(declaration declarator: [
  (function_declarator)
  (pointer_declarator declarator: (function_declarator))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator)))]) @declaration
(preproc_function_def) @macro
(translation_unit (declaration declarator: (init_declarator declarator: (_) @declarator)) @variable)
(preproc_def value: (_)) @constant
