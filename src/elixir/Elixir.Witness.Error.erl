-module('Elixir.Witness.Error').
-moduledoc """
An error of a function of Witness, as an exception: what the functions with `!` raise.

`reason` is what the functions without `!` return in `{:error, reason}`; the message is `Witness.format_error/1` of it.
""".

-define(FIELDS, [{'__exception__', true}, {reason, nil}]).
-export([exception/1, message/1]).

-export_type([t/0]).

-type t() :: #{'__struct__' := ?MODULE, '__exception__' := true, reason := witness:error() | {already_started, pid()}}.

-include("witness_elixir.hrl").

-doc false.
-spec exception([{reason, witness:error() | {already_started, pid()}}]) -> t().
exception(Fields) -> '__struct__'(Fields).

-doc false.
-spec message(t()) -> binary().
message(#{reason := Reason}) -> witness_elixir:format_error(Reason).
