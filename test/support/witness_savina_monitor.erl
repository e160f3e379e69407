-module(witness_savina_monitor).
-moduledoc """
For each process of a benchmark of `m:witness_savina`: satisfied at its end, if its trace began with its birth. The
information of its verdict is `{Sent, Received}`, each the number of the messages and the sum of their hashes. The VM's own
messages are left out. Over all processes of a benchmark both are equal if no message was missed, changed, or seen twice.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2, add/2]).

-type counts() :: {Messages :: non_neg_integer(), Hashes :: non_neg_integer()}.

-spec init(witness_event:signature(), pid(), term()) -> {ok, term()}.
init(_, Self, _) -> {ok, {unborn, Self}}.

-spec handle_event(witness_event:event(), term()) -> {ok, term()} | {verdict, yes | no, term()}.
handle_event({init, Self, _, _, _}, {unborn, Self}) -> {ok, {Self, {0, 0}, {0, 0}}};
handle_event({fork, Self, _, _, _}, {Self, _, _} = S) -> {ok, S};
handle_event({send, Self, _, Message, _}, {Self, Sent, Received}) -> {ok, {Self, add(Sent, hash(Message)), Received}};
handle_event({recv, Self, _, Message, _}, {Self, Sent, Received}) ->
    {ok, {Self, Sent, add(Received, received(Message))}};
handle_event({exit, Self, _, _}, {Self, Sent, Received}) -> {verdict, yes, {Sent, Received}};
handle_event(Event, S) -> {verdict, no, {Event, S}}.

-spec handle_end(complete | stopped, term()) -> {no, term()}.
handle_end(Why, S) -> {no, {Why, S}}.

-doc "The sum of two.".
-spec add(counts(), counts()) -> counts().
add({N1, Hashes1}, {N2, Hashes2}) -> {N1 + N2, Hashes1 + Hashes2}.

hash(Message) -> {1, erlang:phash2(Message, 1 bsl 32)}.

%% Messages of the VM, which no process sends.
received(Message) when element(1, Message) =:= 'DOWN'; element(1, Message) =:= spawn_reply -> {0, 0};
received(Message) -> hash(Message).
