(block (identifier) @name . (block_start) @body) @module
(block . (identifier) @name . (_) @name . (block_start) @body) @module
(block . (identifier) @name . (_) @name . (_) @name . (block_start) @body) @module
(config_file (body (attribute (identifier) @name) @constant))
