(rule_set (selectors) @name (block) @body) @rule
(media_statement (_)? @name (block) @body) @module
(mixin_statement name: (_) @name (block) @body) @function
(function_statement name: (_) @name (block) @body) @function
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @function
(stylesheet (declaration (property_name) @name) @constant)
