-module(witness_inline_elsewhere).
-moduledoc "Code that is not woven, for `m:witness_inline_SUITE`.".
-export([erased/0]).

erased() -> lists:keydelete('$witness_inline', 1, erase()).
