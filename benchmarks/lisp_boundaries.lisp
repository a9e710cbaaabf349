;;; Where SBCL's own reader sees top-level units, for holding gripfast's scanner against.
;;;
;;; Standard input: texts, each as its length in characters on a line, then the characters.
;;; Standard output: a line for each: the offsets "start end start end ..." or "error".
;;;
;;; Nothing is interned or evaluated (*read-suppress*), and `#+x form` is one unit whatever x is. Outside a backquote
;;; a suppressed comma would be cut from its object, so it is read here as it is inside one.

(defun guarded (stream char number)
  (declare (ignore char number))
  (read stream t nil t)
  (read stream t nil t)
  nil)

(set-dispatch-macro-character #\# #\+ #'guarded)
(set-dispatch-macro-character #\# #\- #'guarded)

(defun unquoted (stream char)
  (declare (ignore char))
  (when (member (peek-char nil stream nil nil) '(#\@ #\.)) (read-char stream))
  (read stream t nil t)
  nil)

(set-macro-character #\, #'unquoted)

(defun block-comment-p (text at)
  (let ((bar (and (char= (char text at) #\#) (position-if-not #'digit-char-p text :start (1+ at)))))
    (and bar (char= (char text bar) #\|))))

(defun skip-comments (stream text)
  "Moves STREAM to where the next object begins; false at the end."
  (loop
    (let ((char (peek-char t stream nil nil)))
      (cond ((null char) (return nil))
            ((char= char #\;) (read-line stream nil nil))
            ((block-comment-p text (file-position stream))
             (loop until (char= (read-char stream) #\|))
             (funcall (get-dispatch-macro-character #\# #\|) stream #\| nil))
            (t (return t))))))

(defun boundaries (text)
  (let ((*read-suppress* t) (found '()))
    (with-input-from-string (stream text)
      (loop while (skip-comments stream text)
            do (push (file-position stream) found)
               (read-preserving-whitespace stream)
               (push (file-position stream) found)))
    (nreverse found)))

(defun read-text (stream)
  (let ((size (read-line stream nil nil)))
    (when size
      (let ((text (make-string (parse-integer size))))
        (read-sequence text stream)
        text))))

(let ((in (sb-sys:make-fd-stream 0 :input t :external-format :utf-8 :buffering :full))
      (out (sb-sys:make-fd-stream 1 :output t :external-format :utf-8 :buffering :full)))
  (loop for text = (read-text in)
        while text
        do (handler-case (format out "~{~D~^ ~}~%" (boundaries text))
             (serious-condition () (format out "error~%"))))
  (finish-output out))
