# What Ruby's own parser finds in the files named on standard input: one JSON object a line.
require "json"
require "ripper"

def walk(node, found)
  return unless node.is_a?(RubyVM::AbstractSyntaxTree::Node)

  inside = node.children
  case node.type
  when :DEFN then found << ["method", inside[0].to_s, node.first_lineno, node.last_lineno]
  when :DEFS then found << ["method", inside[1].to_s, node.first_lineno, node.last_lineno]
  when :CLASS, :MODULE
    found << [node.type.to_s.downcase, inside[0].children.last.to_s, node.first_lineno, node.last_lineno]
  end
  inside.each { |each| walk(each, found) }
end

$stderr = File.open(File::NULL, "w")
STDIN.each_line(chomp: true) do |path|
  text = File.read(path, encoding: "UTF-8")
  next unless text.valid_encoding? && Ripper.sexp(text)

  found = []
  walk(RubyVM::AbstractSyntaxTree.parse(text), found)
  puts JSON.generate(file: path, definitions: found)
rescue SyntaxError, ArgumentError
  next
end
