(function_declaration) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration
    type: [(type_identifier) @scope
           (pointer_type (type_identifier) @scope)
           (generic_type type: (_) @scope)
           (pointer_type (generic_type type: (_) @scope))]))) @method
(source_file (type_declaration (type_spec) @type))
(source_file (type_declaration (type_alias) @type))
(source_file (const_declaration (const_spec (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (_) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (_) @name) @variable)))
