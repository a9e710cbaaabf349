(function name: (_) @name @head) @function
(bind name: (_) @name) @constant
(signature name: (_) @name) @head @type
(data_type name: (_) @name) @class
(newtype name: (_) @name) @class
(class name: (_) @name declarations: (_)? @body) @interface
(instance name: (_) @name declarations: (_)? @body) @impl
(type_synonym name: (_) @name) @type
