-module(witness_inline_behaviour_supervisor).
-moduledoc """
The events that the callback module of a supervisor, or of an unknown behaviour, shows of its process: that it has
started, and that it has ended at once; pure.

A supervisor goes on in OTP's module, or in Elixir's. Its callback module does not see what it receives and sends, or how it
ends. The callbacks of an unknown behaviour on `gen` have no known meaning. So monitors that are undecided
after `init` have the gap `no_callbacks`.
""".
-behaviour(witness_inline_behaviour).

-export([new/0, before_callback/4, after_callback/5, has_reported_all/1]).

new() -> none.

before_callback(_, _, _, none) -> {[], none}.

after_callback(_, init, _, {value, ignore}, none) -> {[], none, {ended, normal}};
after_callback(_, init, _, {raised, exit, Reason, _}, none) -> {[], none, {ended, Reason}};
after_callback(_, init, _, {raised, error, Reason, Stack}, none) -> {[], none, {ended, {Reason, Stack}}};
after_callback(_, _, _, _, none) -> {[], none, running}.

has_reported_all(none) -> true.
