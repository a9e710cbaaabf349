(from_instruction (image_spec) @name) @section
(arg_instruction) @constant
(entrypoint_instruction) @constant
(cmd_instruction) @constant
