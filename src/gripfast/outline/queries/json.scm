(document (object (pair key: (_) @name) @key))
(document (array (object (pair key: (_) @name) @key)))
(document (object (pair value: (object (pair key: (_) @name) @key))))
(document (object (pair value: (object (pair value: (object (pair key: (_) @name value: [(object) (array)]) @key))))))
