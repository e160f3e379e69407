-module(witness_record_heap).
-moduledoc """
Keeps the heap of a recorded process in proportion to its mailbox.

Recording makes a process produce more garbage: each message brings a token of six words, and calls that are recorded have
their arguments in a list. So the process collects more often, and each collection goes through the whole mailbox, however
little there is to collect. With ten thousand queued messages that is most of what recording costs. If a mailbox is long, the
process gets a heap of some words for each message in it, so that as many messages share the cost of a collection. These words
are a fraction of what the messages take themselves. When the messages are gone, the heap gets its size back.

*Why it changes nothing else.* The minimal size of a heap is no limit for the program. A process that has a limit
(`max_heap_size`) is left alone, and so is one that has set the size itself since. The collector does the rest when it runs
next.
""".

-export([fit/0, is_key/1]).

-define(KEY, '$witness_record_heap').

%% Messages from which on a mailbox is long.
-define(LONG_MAILBOX, 256).
%% Words of heap for each message.
-define(WORDS_PER_MESSAGE, 8).
-define(MAX_WORDS, 1_048_576).

-doc "Fits the heap to the caller's mailbox. Called now and then.".
-spec fit() -> ok.
fit() ->
    {message_queue_len, Length} = process_info(self(), message_queue_len),
    case get(?KEY) of
        undefined when Length < ?LONG_MAILBOX -> ok;
        undefined -> set_first(Length);
        {Before, Given} when Length < ?LONG_MAILBOX -> reset(Before, Given);
        {_, Given} when Length * ?WORDS_PER_MESSAGE < 2 * Given; Given >= ?MAX_WORDS -> ok;
        {Before, Given} -> grow(Length, Before, Given)
    end.

-doc "Whether this key of a process dictionary belongs to this module.".
-spec is_key(term()) -> boolean().
is_key(Key) -> Key =:= ?KEY.

set_first(Length) ->
    {garbage_collection, Info} = process_info(self(), garbage_collection),
    {_, Least} = lists:keyfind(min_heap_size, 1, Info),
    case lists:keyfind(max_heap_size, 1, Info) of
        {_, #{size := 0}} -> set_size(words(Length), Least);
        _ -> ok
    end.

words(Length) -> min(Length * ?WORDS_PER_MESSAGE, ?MAX_WORDS).

%% The VM rounds the size up, and returns the actual one when it is set again.
set_size(Words, Before) when Words > Before ->
    _ = process_flag(min_heap_size, Words),
    put(?KEY, {Before, process_flag(min_heap_size, Words)}),
    ok;
set_size(_, _) ->
    ok.

grow(Length, Before, Given) ->
    case process_flag(min_heap_size, words(Length)) of
        Given -> set_size(words(Length), Before);
        Own -> leave_to_program(Own)
    end.

reset(Before, Given) ->
    case process_flag(min_heap_size, Before) of
        Given -> erase(?KEY), ok;
        Own -> leave_to_program(Own)
    end.

%% The program has chosen a size itself.
leave_to_program(Own) ->
    _ = process_flag(min_heap_size, Own),
    _ = erase(?KEY),
    ok.
