-module(witness_inline_behaviour_supervisor).
-moduledoc """
What the callback module of a supervisor, or of a behaviour that is not known, tells of its process: that it has
begun, and that it has ended at once; pure.

A supervisor that goes on does so in OTP's module, or in Elixir's; what it receives and sends, and how it ends, its
callback module does not see. Of another behaviour on `gen` nobody knows what its callbacks are. So whoever is undecided
after `init` has the gap `no_callbacks`.
""".
-behaviour(witness_inline_behaviour).

-export([new/0, given/4, returned/5, is_told/1]).

new() -> none.

given(_, _, _, none) -> {[], none}.

returned(_, init, _, {value, ignore}, none) -> {[], none, {ended, normal}};
returned(_, init, _, {raised, exit, Reason, _}, none) -> {[], none, {ended, Reason}};
returned(_, init, _, {raised, error, Reason, Stack}, none) -> {[], none, {ended, {Reason, Stack}}};
returned(_, _, _, _, none) -> {[], none, running}.

is_told(none) -> true.
