(document (block_node (block_mapping (block_mapping_pair key: (_) @name) @key)))
(document (block_node (block_mapping (block_mapping_pair value: (block_node (block_mapping (block_mapping_pair key: (_) @name) @key))))))
(document (block_node (block_mapping (block_mapping_pair value: (block_node (block_mapping (block_mapping_pair value: (block_node (block_mapping (block_mapping_pair key: (_) @name value: (block_node)) @key)))))))))
(document (block_node (block_sequence (block_sequence_item (block_node (block_mapping . (block_mapping_pair key: (_) @name))))  @key)))
