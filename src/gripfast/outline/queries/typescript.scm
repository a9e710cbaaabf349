; inherits: ecmascript
(ambient_declaration (_) @inner) @wrap
(abstract_class_declaration) @class
(interface_declaration) @interface
(type_alias_declaration) @type
(enum_declaration) @enum
(internal_module) @module
(module) @module
(function_signature) @function
(method_signature) @method
(abstract_method_signature) @method
(public_field_definition name: (_) @name
  value: [(arrow_function) @value (function_expression) @value]) @method
(ambient_declaration (_ (variable_declarator name: (_) @name)) @variable)
