(element (start_tag (tag_name) @tag (attribute (attribute_name) @attribute (quoted_attribute_value (attribute_value) @name)))
  (#eq? @attribute "id")) @section
(element (start_tag (tag_name) @name) (#any-of? @name "html" "head" "body" "header" "main" "footer" "nav" "section" "article" "form" "table")) @section
(element (start_tag (tag_name) @tag) . (text) @name (#match? @tag "^h[1-6]$")) @constant
(script_element (start_tag (tag_name) @name)) @section
(style_element (start_tag (tag_name) @name)) @section
