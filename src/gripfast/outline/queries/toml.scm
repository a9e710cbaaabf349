(document (pair . (_) @name) @key)
(table . (_) @name) @section
(table_array_element . (_) @name) @section
