(create_table (object_reference) @name (column_definitions)? @body) @class
(create_view (object_reference) @name) @type
(create_materialized_view (object_reference) @name) @type
(create_function (object_reference) @name (function_body)? @body) @function
(create_index (keyword_index) . (_)? @name) @constant
(create_type (object_reference) @name) @type
(create_trigger (object_reference) @name) @function
(alter_table (object_reference) @name) @constant
