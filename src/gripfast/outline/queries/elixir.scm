(call target: (identifier) @called (arguments . [(alias) (call target: (_)) (identifier) (binary_operator left: (call target: (_)))] @name) (do_block) @body
  (#any-of? @called "defmodule" "defprotocol" "defimpl")) @module
(call target: (identifier) @called
  (arguments . [(identifier) @name (call target: (identifier) @name)
    (binary_operator left: [(identifier) @name (call target: (identifier) @name)])]) (do_block)? @body
  (#any-of? @called "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate")) @function
(call target: (identifier) @called (arguments . (string) @name) (do_block) @body
  (#any-of? @called "describe" "test")) @test
