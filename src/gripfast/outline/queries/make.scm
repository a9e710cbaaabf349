(makefile (rule (targets) @name (recipe)? @body) @function)
(makefile (variable_assignment name: (_) @name) @variable)
(makefile (define_directive name: (_) @name) @variable)
