-module(witness_inline_behaviour_supervisor).
-moduledoc """
The events that the callback module of a supervisor, or of an unknown behaviour, shows of its process: that it has
started, and that it has ended at once; pure.

A supervisor goes on in OTP's module, or in Elixir's. Its callback module does not see what it receives and sends, or how it
ends. The callbacks of an unknown behaviour on `gen` have no known meaning. So monitors that are undecided
after `init` have the gap `no_callbacks`.
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
