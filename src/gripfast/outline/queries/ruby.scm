(class) @class
(module) @module
(singleton_class value: (_) @name) @class
(method) @method
(singleton_method) @method
(program (assignment left: (constant) @name) @constant)
(body_statement (assignment left: (constant) @name) @constant)
(call method: (identifier) @called
  arguments: (argument_list . (_) @name) block: [(do_block body: (_) @body) (block body: (_) @body)]
  (#any-of? @called "describe" "context" "it" "specify" "test" "namespace" "task" "shared_examples")) @test
(program (identifier) @fault @name (#eq? @fault "end"))
