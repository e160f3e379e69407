-module(witness_event).
-moduledoc """
The events that Witness sees of a system, and how they are written for people.

A system is a set of processes, and of each of them Witness sees seven kinds of events:

| Kind | Meaning | Written |
|---|---|---|
| `fork` | it has spawned a process | `<0.90.0> -> <0.91.0>, calc_server:loop(10)` |
| `init` | it was spawned; the first event of every process | `<0.91.0> <- <0.90.0>, calc_server:loop(10)` |
| `send` | it has sent a message | `<0.91.0> : <0.90.0> ! {ok,3}` |
| `recv` | a message has arrived in its mailbox | `<0.91.0> ? {<0.90.0>,{add,1,2}}` |
| `call` | it calls a function that a monitor names | `<0.91.0> calls calc:add(1,2)` |
| `return` | such a call has returned a value | `<0.91.0> returns calc:add/2 -> 3` |
| `exit` | it has ended; the last event of every process | `<0.91.0> ** normal` |

The notation is that of the specification language, so printed events can be copied into a specification. `_`
means a parent that is not known.

A stream of events also has two marks that are not events. A `gap` says that events are missing. `attached` is in place of
`init` if observation of the process began while it was running.

A `call` comes before all events that the call leads to in its process, and its `return` after them. A call that raises an exception, or
never ends, has no `return`.

The second element of every event and mark is the process that it belongs to, the last one is its
time. The events of one process are in the order in which they occurred. Between processes a `fork` precedes
every event of the child; a stronger order holds only if the source of the events guarantees it.
""".

-export([kind/1, proc/1, ts/1, bytes/1]).
-export([format/1, format/2, format/3, format_term/2, format_signature/1, format_function/1, format_proc/1]).
-export([syntax/1, syntax_of_function/1, use_syntax/1, used_syntax/0]).
-export([syntax_of_reason/1, format_term/3, format_reason/3, format_signature/2, format_function/2, format_proc/2]).

-export_type([syntax/0, signature/0, proc/0, ts/0, destination/0, origin/0, event/0, kind/0, item/0]).

-doc "The function and arguments that a process was spawned with, as its author wrote them (see `witness_event_signature`).".
-type signature() :: {module(), Function :: atom(), Args :: [term()]}.

-doc "A process of the system, or a name in a log that is not a process of a BEAM.".
-type proc() :: pid() | {external, binary()}.

-doc "Monotonic time in nanoseconds. `undefined` if the source gives no times.".
-type ts() :: integer() | undefined.

-doc "The destination of a message: a process, a port, a registered name, a name on a node, or an alias (a reference).".
-type destination() :: proc() | port() | atom() | {atom(), node()} | reference().

-doc "The sender of a message. `undefined` for timers, remote processes, and sources that do not report it.".
-type origin() :: proc() | port() | undefined.

-doc "The notation of terms, functions and processes: that of Erlang, or that of `inspect/2` of Elixir.".
-type syntax() :: erlang | elixir.

-doc "Something that a process did, or that was done to it.".
-type event() ::
    {fork, Parent :: proc(), Child :: proc(), signature(), ts()}
  | {init, Child :: proc(), Parent :: proc() | undefined, signature(), ts()}
  | {exit, proc(), Reason :: term(), ts()}
  | {send, proc(), To :: destination(), Msg :: term(), ts()}
  | {recv, proc(), From :: origin(), Msg :: term(), ts()}
  | {call, proc(), signature(), ts()}
  | {return, proc(), mfa(), Value :: term(), ts()}.

-doc "The kinds of events.".
-type kind() :: fork | init | exit | send | recv | call | return.

-doc """
The elements of a stream of events. A `gap` says that events of the process are missing here, why, and how many;
`attached` names the function that the process was in when it was first seen.
""".
-type item() ::
    event()
  | {gap, proc(), Reason :: atom(), Missing :: non_neg_integer() | unknown, ts()}
  | {attached, proc(), mfa(), ts()}.

%% Characters that each part of a formatted event may take: a line of a terminal or two for the longest event.
-define(PART_CHARACTERS, 200).

%% The notation that a process uses for all that it writes, in its dictionary.
-define(USED, '$witness_syntax').

-doc "The kind of an event, or of a mark.".
-spec kind(event()) -> kind();
          (item()) -> kind() | gap | attached.
kind(Item) -> element(1, Item).

-doc "The process that the event belongs to.".
-spec proc(item()) -> proc().
proc(Item) -> element(2, Item).

-doc "The time of the event, in nanoseconds.".
-spec ts(item()) -> ts().
ts(Item) -> element(tuple_size(Item), Item).

-doc """
The size of a term in bytes: in the memory of a process, or including the large binaries that it refers to, whichever is
larger.
""".
-spec bytes(term()) -> non_neg_integer().
bytes(Term) -> max(erts_debug:flat_size(Term) * erlang:system_info(wordsize), erlang:external_size(Term)).

-doc "The event as a line of text, without its time. Messages, reasons, signatures, calls and values are cut to 200 characters each.".
-spec format(item()) -> binary().
format(Item) -> format(Item, ?PART_CHARACTERS).

-doc """
Like `format/1`, with each of these parts cut to `Limit` characters.

The text is UTF-8, on one line, and without control characters, whatever the system has put into the event.
""".
-spec format(item(), Limit :: non_neg_integer()) -> binary().
format(Item, Limit) -> format(Item, Limit, erlang).

-doc "Like `format/2`, with processes, functions and terms in the notation of a language.".
-spec format(item(), Limit :: non_neg_integer(), syntax()) -> binary().
format({fork, Parent, Child, Signature, _}, Limit, Syntax) ->
    join([format_proc(Parent, Syntax), ~" -> ", format_proc(Child, Syntax), ~", ", format_call(Signature, Limit, Syntax)]);
format({init, Child, Parent, Signature, _}, Limit, Syntax) ->
    join([format_proc(Child, Syntax), ~" <- ", format_proc(Parent, Syntax), ~", ", format_call(Signature, Limit, Syntax)]);
format({exit, Proc, Reason, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" ** ", format_term(Reason, Limit, Syntax)]);
format({send, Proc, To, Msg, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" : ", format_proc(To, Syntax), ~" ! ", format_term(Msg, Limit, Syntax)]);
format({recv, Proc, _From, Msg, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" ? ", format_term(Msg, Limit, Syntax)]);
format({call, Proc, Call, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" calls ", format_call(Call, Limit, Syntax)]);
format({return, Proc, Function, Value, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" returns ", format_function(Function, Limit, Syntax), ~" -> ", format_term(Value, Limit, Syntax)]);
format({gap, Proc, Reason, Missing, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" gap, ", missing(Missing), ~": ", format_term(Reason, Limit, Syntax)]);
format({attached, Proc, Function, _}, Limit, Syntax) ->
    join([format_proc(Proc, Syntax), ~" attached, in ", format_function(Function, Limit, Syntax)]).

format_call(Signature, Limit, erlang) -> witness_event_term:call(Signature, Limit);
format_call(Signature, Limit, elixir) -> witness_event_inspect:call(Signature, Limit).

-doc """
A term as text of at most `Limit` characters, on one line, in Erlang's notation.

Longer text ends in `...`; the limit bounds the work, whatever the size of the term. Control characters,
and the characters that change the direction of text, appear as escapes only.
""".
-spec format_term(term(), Limit :: non_neg_integer()) -> binary().
format_term(Term, Limit) -> witness_event_term:format(Term, Limit).

-doc "Like `format_term/2`, in the notation of a language.".
-spec format_term(term(), Limit :: non_neg_integer(), syntax()) -> binary().
format_term(Term, Limit, erlang) -> format_term(Term, Limit);
format_term(Term, Limit, elixir) -> witness_event_inspect:format(Term, Limit).

-doc """
The language in which text about these modules is written: that of `use_syntax/1`, or else Elixir if one of them is written in it.
""".
-spec syntax([module()]) -> syntax().
syntax(Modules) ->
    case used_syntax() of
        auto -> language(Modules);
        Syntax -> Syntax
    end.

language(Modules) ->
    case lists:any(fun is_elixir/1, Modules) of
        true -> elixir;
        false -> erlang
    end.

-doc """
Chooses the notation of what the calling process writes from now on, whatever the modules are; `auto` is the one of the modules. Each
process of a run that writes text calls it, with the option `syntax`.
""".
-spec use_syntax(auto | syntax()) -> ok.
use_syntax(auto) -> erase(?USED), ok;
use_syntax(Syntax) -> put(?USED, Syntax), ok.

-doc "What `use_syntax/1` has chosen for the calling process, for a process that it spawns.".
-spec used_syntax() -> auto | syntax().
used_syntax() ->
    case get(?USED) of
        undefined -> auto;
        Syntax -> Syntax
    end.

-doc "The language of a function that a process was spawned with, or that is called; Erlang if it is not known.".
-spec syntax_of_function(signature() | mfa() | undefined) -> syntax().
syntax_of_function({Module, _, _}) -> syntax([Module]);
syntax_of_function(undefined) -> syntax([]).

-doc "The language of the modules that the reason of an end names: those of its stack, or of its call.".
-spec syntax_of_reason(Reason :: term()) -> syntax().
syntax_of_reason({_, [_ | _] = Stack}) ->
    try
        syntax([Module || {Module, _, _, _} <- Stack, is_atom(Module)])
    catch
        error:_ -> syntax([])
    end;
syntax_of_reason({_, {Module, _, _}}) when is_atom(Module) -> syntax([Module]);
syntax_of_reason(_) -> syntax([]).

is_elixir(Module) ->
    case atom_to_binary(Module) of
        <<"Elixir.", _/binary>> -> true;
        _ -> false
    end.

-doc "Why a process has ended: a term of Erlang, or what `Exception.format_exit/1` of Elixir says, on one line.".
-spec format_reason(Reason :: term(), Limit :: non_neg_integer(), syntax()) -> binary().
format_reason(Reason, Limit, erlang) -> format_term(Reason, Limit);
format_reason(Reason, Limit, elixir) -> witness_event_inspect_exit:format(Reason, Limit).

-doc """
A signature as text, `m:f(A1,A2)`, cut to 200 characters. A module of Elixir is written by its alias,
`MyApp.Server.init(1)`.
""".
-spec format_signature(signature()) -> binary().
format_signature(Signature) -> witness_event_term:call(Signature, ?PART_CHARACTERS).

-doc "Like `format_signature/1`, in the notation of a language: `:m.f(a1, a2)` in that of Elixir.".
-spec format_signature(signature(), syntax()) -> binary().
format_signature(Signature, erlang) -> format_signature(Signature);
format_signature(Signature, elixir) -> witness_event_inspect:call(Signature, ?PART_CHARACTERS).

-doc "A function as text, `m:f/2`, cut to 200 characters.".
-spec format_function(mfa()) -> binary().
format_function(Function) -> join([format_function(Function, ?PART_CHARACTERS, erlang)]).

-doc "Like `format_function/1`, in the notation of a language: `:m.f/2` in that of Elixir.".
-spec format_function(mfa(), syntax()) -> binary().
format_function(Function, Syntax) -> join([format_function(Function, ?PART_CHARACTERS, Syntax)]).

-doc "A process, as in the text of an event.".
-spec format_proc(proc()) -> binary().
format_proc(Proc) -> format_proc(Proc, erlang).

-doc "Like `format_proc/1`, in the notation of a language: `#PID<0.90.0>` in that of Elixir.".
-spec format_proc(proc(), syntax()) -> binary().
format_proc(undefined, _) -> ~"_";
format_proc({external, Name}, _) when is_binary(Name) -> witness_event_term:text(Name, ?PART_CHARACTERS);
format_proc(Proc, Syntax) -> format_term(Proc, ?PART_CHARACTERS, Syntax).

%% Internal

format_function({Module, Function, Arity}, Limit, erlang) -> witness_event_term:function(Module, Function, Arity, Limit);
format_function({Module, Function, Arity}, Limit, elixir) -> witness_event_inspect:function(Module, Function, Arity, Limit).

missing(unknown) -> ~"an unknown number of events missing";
missing(1) -> ~"1 event missing";
missing(Count) -> [integer_to_binary(Count), ~" events missing"].

join(Parts) -> iolist_to_binary(Parts).
