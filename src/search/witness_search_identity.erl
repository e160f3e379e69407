-module(witness_search_identity).
-moduledoc """
The pids and references of a controlled program. *Invariant:* they are a function of the schedule, so they do not depend on what else
this VM has done. The VM makes none of them: their pids have a serial number that it reaches after 2^28 processes, and their
references are numbers that it does not use.
""".

-export([pid/1, reference/1, alias/2]).

%% Kinds of references are told apart by a bit of their second word; one that identifies a process has two words more, for its pid.
-define(PID_REFERENCE, 16#10000).
-define(SERIAL, 1).
-define(PID_BITS, 28).
-define(PID_TAG, 3).
-define(FIRST_WORD_BITS, 18).
%% Of the VM's table of processes, if it has the default size, and of a cache line in it.
-define(TABLE_BITS, 20).
-define(LINE_BITS, 3).

-doc "The pid of a process.".
-spec pid(pos_integer()) -> pid().
pid(Id) -> list_to_pid("<0." ++ integer_to_list(Id) ++ "." ++ integer_to_list(?SERIAL) ++ ">").

-doc "The reference with this number.".
-spec reference(pos_integer()) -> reference().
reference(Number) -> make([low(Number), 0, high(Number)]).

-doc "The same, as an alias of this process, which `witness_event_alias:owner/1` finds.".
-spec alias(pos_integer(), Id :: pos_integer()) -> reference().
alias(Number, Id) ->
    %% The pid as a word of the VM.
    Pid = (internal(Id) bor (?SERIAL bsl ?PID_BITS)) bsl 4 bor ?PID_TAG,
    make([low(Number), ?PID_REFERENCE, high(Number), Pid band 16#ffffffff, Pid bsr 32]).

%% The VM permutes the bits of the number of a process.
internal(Id) ->
    Index = Id band (1 bsl ?TABLE_BITS - 1),
    Line = Index band (1 bsl (?TABLE_BITS - ?LINE_BITS) - 1),
    (Id - Index) bor (Line bsl ?LINE_BITS) bor (Index bsr (?TABLE_BITS - ?LINE_BITS)).

low(Number) -> Number band (1 bsl ?FIRST_WORD_BITS - 1).

high(Number) -> Number bsr ?FIRST_WORD_BITS.

make(Words) ->
    %% The node and its creation are those of this VM.
    Own = term_to_binary(self()),
    Bytes = byte_size(Own) - 14,
    <<131, 88, Node:Bytes/binary, _:64, Creation:4/binary>> = Own,
    Numbers = << <<Word:32>> || Word <- Words >>,
    binary_to_term(<<131, 90, (length(Words)):16, Node/binary, Creation/binary, Numbers/binary>>).
