(rule_set (selectors) @name (block) @body) @rule
(media_statement (_)? @name (block) @body) @module
(supports_statement (_)? @name (block) @body) @module
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @function
(at_rule (at_keyword) @name (block) @body) @module
