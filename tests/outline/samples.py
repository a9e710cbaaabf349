"""One small source for each language."""

from __future__ import annotations

SAMPLES: dict[str, str] = {
    "Python": '''\
"""Words."""
import os

LIMIT = 3

@cached
@other(
    1)
class Box(
    Base,
):
    """A box."""

    @property
    def size(self) -> int:
        # why
        return 1
        # trailing

    async def open(
        self,
        key,
    ): return key

def outer():
    def inner():
        pass
    return inner

type Pair = tuple[int, int]
''',
    "JavaScript": """\
const LIMIT = 3;
export class Box extends Base {
  #size = 1;
  handler = (event) => {
    go(event);
  };
  get size() { return 1; }
  static async open(
    key,
  ) {
    return key;
  }
}
export default function main() {
  return 1;
}
const run = async () => {
  await 1;
};
module.exports.stop = function (x) {
  return x;
};
Box.prototype.close = function () {
  return 1;
};
const api = {
  fetch() {
    return 1;
  },
  send: function () {
    return 2;
  },
};
describe("box", () => {
  it("opens", async () => {
    await 1;
  });
});
function* gen() {
  yield 1;
}
""",
    "TypeScript": """\
export interface Shape {
  area(): number;
  name: string;
}
export type Id = string | number;
export enum Color {
  Red,
}
export const LIMIT: number = 3, OTHER = 4;
export abstract class Box<T> implements Shape {
  private handler = () => {
    return 1;
  };
  abstract area(): number;
  constructor(private x: number) {
    super();
  }
}
declare function ambient(x: number): void;
export namespace Deep {
  export function inside(): void {
    return;
  }
  export const value = 1;
}
declare module "m" {
  function f(): void;
}
export function over(a: string): void;
export function over(a: unknown): void {
  return;
}
""",
    "TSX": """\
export const App = ({ x }: Props) => {
  return <div onClick={() => go()}>{x}</div>;
};
""",
    "Go": """\
package main

import "fmt"

const Limit, Most = 3, 4

const (
	A = iota
	B
)

var table = map[string]int{
	"a": 1,
}

// Box is a box.
type Box struct {
	size int
}

type (
	ID   = string
	Shape interface {
		Area() int
	}
)

func (b *Box) Size() int {
	return b.size
}

func Map[T any](
	xs []T,
) []T {
	return xs
}
""",
    "Rust": """\
pub const LIMIT: u32 = 3;
#[derive(Debug)]
#[serde(rename = "b")]
pub struct Box<T> {
    size: T,
}
pub struct Unit;
pub trait Shape {
    fn area(&self) -> u32;
}
impl<T> Shape for Box<T> {
    fn area(&self) -> u32 {
        1
    }
}
mod tests {
    #[test]
    fn it_works() {
        assert!(true);
    }
}
macro_rules! go {
    () => {};
}
pub enum Color { Red }
type Id = u32;
""",
    "Java": """\
package a;

import java.util.List;

/** A box. */
@Deprecated
public class Box<T> extends Base {
    static final int LIMIT = 3;

    public Box(int x) {
        this.x = x;
    }

    @Override
    public List<T> items(
        int a,
        int b
    ) throws Exception {
        return null;
    }

    abstract void nothing();

    enum Color { RED, GREEN }

    interface Shape {
        int area();
    }

    record Point(int x, int y) {
        Point {
            check(x);
        }
    }
}
""",
    "Kotlin": """\
package a

const val LIMIT = 3

class Box(val x: Int) : Base() {
    fun size(): Int {
        return 1
    }
    fun short() = 2
    companion object {
        fun make() = Box(1)
    }
}

interface Shape {
    fun area(): Int
}

object Single {
    fun go() {}
}

enum class Color { RED }

data class Point(val x: Int)

fun String.shout(): String {
    return this
}
typealias Id = String

class Copy {
    internal constructor(other: Copy) : this() {
        go()
    }
}
""",
    "Scala": """\
package a

trait Shape {
  def area: Int
}

case class Box(x: Int) extends Shape {
  val limit = 3
  def area: Int = {
    1
  }
}

object Box {
  def make(x: Int): Box = new Box(x)
}
""",
    "C": """\
#include <stdio.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))

typedef struct box {
    int size;
} box_t;

struct point {
    int x;
};

enum color { RED, GREEN };

typedef int (*callback)(void *);

extern int proto(int a,
                 int b);

static char *
name(struct box *b,
     int n)
{
    return b->name;
}

int main(int argc, char **argv) {
    return 0;
}
""",
    "C++": """\
namespace a::b {
template <typename T>
class Box : public Base {
public:
    Box(int x) : x_(x) {}
    virtual int size() const = 0;
    T &get() {
        return x_;
    }
    operator bool() const {
        return true;
    }
};
using Id = int;
}
int a::Other::run(int x) {
    return x;
}
""",
    "C#": """\
using System;

namespace A.B
{
    [Serializable]
    public class Box<T> : Base
    {
        public int Size { get; set; }
        public Box(int x)
        {
        }
        public T Get(
            int a)
        {
            return default;
        }
        public int Short() => 1;
    }
    public interface IShape
    {
        int Area();
    }
    public enum Color { Red }
    public record Point(int X, int Y);
}
""",
    "Ruby": """\
module A
  LIMIT = 3
  class Box < Base
    attr_reader :x

    def size
      1
    end

    def self.make(a,
                  b)
      new(a)
    end

    class << self
      def inner; end
    end
  end
end

describe "box" do
  it "opens" do
    go
  end
end
""",
    "PHP": """\
<?php
namespace A;

const LIMIT = 3;

#[Attr]
final class Box extends Base
{
    public function __construct(
        private int $x,
    ) {
        go();
    }

    abstract protected function none(): int;
}

interface Shape
{
    public function area(): int;
}

trait T {
    function t() { return 1; }
}

enum Suit: string {
    case A = 'a';
}

function run(int $x): int
{
    return $x;
}
""",
    "Swift": """\
let limit = 3

protocol Shape {
    func area() -> Int
}

class Box: Shape {
    var size: Int {
        return 1
    }
    init(x: Int) {
        self.x = x
    }
    func area() -> Int {
        return 1
    }
}

struct Point {
    func go() {}
}

enum Color {
    case red
}

extension Box {
    func more() {
        go()
    }
}
""",
    "Bash": """\
#!/bin/bash
LIMIT=3
export OTHER=4
run() {
  echo 1
}
function stop {
  echo 2
}
""",
    "Lua": """\
local M = {}
local function hidden(a)
  return a
end
function M.open(x)
  return x
end
function M:close()
  return 1
end
M.run = function(a)
  return a
end
return M
""",
    "SQL": """\
CREATE TABLE users (
    id integer PRIMARY KEY,
    name text
);
CREATE VIEW active AS
    SELECT * FROM users;
CREATE INDEX users_name ON users (name);
""",
    "HCL": """\
resource "aws_instance" "web" {
  ami = "a"
  tags {
    x = 1
  }
}
variable "region" {
  default = "eu"
}
locals {
  a = 1
}
""",
    "CSS": """\
.a,
.b {
  color: red;
}
@media (max-width: 3px) {
  .c {
    color: blue;
  }
}
""",
    "SCSS": """\
$limit: 3px;
@mixin round($x) {
  border: $x;
}
.a {
  .b {
    color: red;
  }
}
""",
    "HTML": """\
<html>
<head>
<script>
let x = 1;
</script>
</head>
<body>
<h1>Title</h1>
<div id="main">
<p>text</p>
</div>
</body>
</html>
""",
    "Elixir": """\
defmodule A.Box do
  @moduledoc "words"

  def size(box) do
    box.size
  end

  defp hidden(x) when x > 1, do: x

  defmacro go do
    1
  end
end
""",
    "Haskell": """\
module A where

data Box = Box
  { size :: Int
  }

class Shape a where
  area :: a -> Int

instance Shape Box where
  area b = size b

run :: Int -> Int
run x =
  x + 1
""",
    "Julia": """\
module A

const LIMIT = 3

struct Box
    size::Int
end

function run(
    x)
    return x
end

short(x) = x + 1

end
""",
    "Zig": """\
const std = @import("std");
pub const Box = struct {
    size: u32,
    pub fn area(self: Box) u32 {
        return self.size;
    }
};
pub fn main() !void {
    return;
}
test "it works" {
    try go();
}
""",
    "PowerShell": """\
function Get-Box {
    param($x)
    return $x
}
class Box {
    [int] Size() {
        return 1
    }
}
""",
    "Solidity": """\
contract Box is Base {
    event Opened(uint x);
    struct Point {
        uint x;
    }
    function size(uint a) public returns (uint) {
        return a;
    }
}
""",
    "GraphQL": """\
type Box implements Shape {
  size: Int
}
query GetBox {
  box {
    size
  }
}
""",
    "Make": """\
LIMIT = 3
all: build
\techo 1
\techo 2
build:
\techo 3
""",
    "Dockerfile": """\
FROM python:3 AS base
RUN a
COPY . .
FROM base
CMD ["x"]
""",
    "Markdown": """\
# Title

Words.

## Part one

- a

```sh
# not a heading
```

### Deeper

x

Second
======

y
""",
    "JSON": """\
{
  "name": "x",
  "scripts": {
    "test": "a",
    "build": "b"
  },
  "list": [
    1
  ]
}
""",
    "YAML": """\
name: x
on:
  push:
    branches: [a]
jobs:
  test:
    steps:
      - run: a
      - run: b
""",
    "TOML": """\
title = "x"

[project]
name = "a"

[[tool.list]]
x = 1
""",
    "Common Lisp": """\
(in-package :a)

(defun run (x)
  "Words."
  (go x))

(eval-when (:compile-toplevel)
  (defmacro deep (y)
    y))
""",
}
