; inherits: ecmascript
(field_definition property: (_) @name value: [(arrow_function) @value (function_expression) @value]) @method
