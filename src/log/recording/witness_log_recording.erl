-module(witness_log_recording).
-moduledoc """
Recordings: the data that determined an execution, in the files of a folder (`docs/internals/record.md`).

```
1> {ok, R} = witness_log_recording:open("calc.rec").
2> witness_log_recording:info(R).
#{complete => true, ended => finished, cut => [], ...}
3> witness_log_recording:fold(fun(Entry, Entries) -> [Entry | Entries] end, [], 1, R).
{ok, [{exit,normal}, {from,2}, {spawn,2}]}
```

For each process there are its entries, in its order. Between processes there is no order, with two exceptions: all entries of a
child follow its spawn, and taking a message follows the birth of its sender.

A recording is data. Nothing in it is run or loaded; the number of atoms that it adds to the VM is bounded, and so is the
expanded size of its blocks. Its files are read a block at a time, by the index. If there is no index, or the recording
continues after it, `open/2` makes one. If a recording was cut, all its whole parts are read, wherever the cut is. Any other
damage is an error that says in which file it is, and where.

An open recording is a plain term. Any process may use it, and there is nothing to close.
""".

-export([open/1, open/2, header/1, info/1, modules/1, unwoven/1, refusals/1, waiting/1, has_times/1, ended_at/1,
         atoms/1]).
-export([processes/1, signature/2, rows/1, fold_processes/3, fold_births/3, birth/3, ids/1, entries/2, demand/2, fold/4,
         fold_runs/4, with_cursors/2, format_error/1]).

-export_type([recording/0, options/0, info/0, process/0, called/0, entry/0, run/0, ordered/0, reason/0, error/0]).

-doc """
- `max_atoms`: how many names the recording may add to those that the VM knows (100,000);
- `signatures`: rows for signatures (`m:witness_event_wrapper`), in addition to those of the recording. They were checked.
""".
-type options() :: #{max_atoms => pos_integer(), signatures => [witness_event_wrapper:row()], ordered => boolean()}.

-doc "A recording.".
-opaque recording() :: #{dir := file:filename_all(), header := map(), info := info(), full := boolean(),
                         calls := #{non_neg_integer() => mfa()}, atoms := witness_log_atoms:atoms(),
                         index := witness_log_recording_index:index(), ordered := boolean(),
                         signatures := witness_event_wrapper:table()}.

-doc """
- `complete`: the recording was ended properly, and nothing is missing;
- `ended`: `finished`, why it had to end early, or `unknown`: the VM has died, or still records;
- `stopped`: how the program ended, if the recording ended with it as planned: live processes were stopped then. `none`: it did
  not end so, or the recorder did not say;
- `cut`: files with bytes after the last whole block, or that were longer once;
- `indexed`: the index was there;
- `sizes`: of the files, in bytes.
""".
-type info() :: #{complete := boolean(), ended := term(), stopped := none | term(), cut := [order | data | processes],
                  indexed := boolean(),
                  sizes := witness_log_recording_index:sizes()}.

-doc """
A process. `signature`: what the VM has spawned it with; `called`: what its author wrote (`signature/2`); `ended`: its end was recorded;
`early`: the recording begins late, and earlier entries of the process are missing; `time`: that of its birth, if the recording has
times, in nanoseconds since it was opened.
""".
-type process() :: #{id := pos_integer(), parent := non_neg_integer(), place := non_neg_integer(), pid := term(),
                     signature := term(), called := called(), early => true, time => non_neg_integer(),
                     ended := boolean()}.

-doc "Without the arguments if they are not in the recording. `undefined`: the recording has no function there.".
-type called() :: witness_event:signature() | mfa() | undefined.

-doc """
An entry of a process: it took a message of a process, or one from outside; its `after` was taken; it spawned; a call returned or
raised; it sent to a name, and this process received it; the hash or the contents of the preceding message; what it sent; it was
waiting in a `receive` when it was ended; its end.
""".
-type entry() :: {from, pos_integer()} | {content, term()} | timeout | {spawn, pos_integer()}
               | {result, mfa(), term()} | {raise, mfa(), Class :: term(), Reason :: term()}
               | {named, non_neg_integer()} | {hash, <<_:64>>} | {contents, term()} | {sent, To :: term(), term()}
               | waited | {exit, Reason :: term()}.

-doc "An entry, or a count of consecutive messages of one sender, or of consecutive timeouts.".
-type run() :: entry() | {from, pos_integer(), N :: pos_integer()} | {timeout, N :: pos_integer()}.

-doc """
A call on shared memory with its place in the order of all such calls. A change that begins, and one that ends, increase a number by
one each; what only reads has the number when it begins. So if a change ends before another call begins, its end is not greater than
the beginning of the other one.
""".
-type ordered() :: {ordered, Begin :: non_neg_integer(), End :: non_neg_integer(), entry()}.

-doc "What is wrong, and where.".
-type reason() :: witness_log_recording_file:reason().

-type error() :: {?MODULE, reason()}.

-define(MAX_ATOMS, 100_000).

%% In a file of the recorder each birth and end takes several bytes, however well it is compressed. A file with more of them
%% per byte is not the recorder's, and would take memory without bound. Limits: records, and words of memory, for each byte of
%% the file, in addition to those that any file may have.
-define(RECORDS_PER_BYTE, 2).
-define(FREE_RECORDS, 100_000).
-define(WORDS_PER_BYTE, 32).
-define(FREE_WORDS, 16_777_216).

%% Bytes of the names of all atoms, bytes that each name costs in addition, and bytes of the longest name.
-define(MAX_NAMES_BYTES, 268_435_456).
-define(NAME_COST_BYTES, 64).
-define(MAX_NAME_BYTES, 1_020).

-doc "Opens the recording in a folder.".
-spec open(file:filename_all()) -> {ok, recording()} | {error, error()}.
open(Dir) -> open(Dir, #{}).

-doc "The same, with options.".
-spec open(file:filename_all(), options()) -> {ok, recording()} | {error, error()}.
open(Dir, Options) ->
    Atoms = witness_log_atoms:new(maps:get(max_atoms, Options, ?MAX_ATOMS)),
    maybe
        {ok, Id, Header} ?= map(Dir, header, Atoms),
        {ok, Calls} ?= calls(Header, Dir),
        {ok, Rows} ?= recorded_rows(Header, Dir),
        {ok, More} = witness_event_wrapper:table(maps:get(signatures, Options, [])),
        {ok, End} ?= read_end(Dir, Id, Atoms),
        {ok, R} ?= open_files(Dir, Id, Header, Calls, End, Atoms),
        {ok, R#{ordered => maps:get(ordered, Options, false), signatures => witness_event_wrapper:add(Rows, More)}}
    else
        cut -> error_at(Dir, header, 0, cut);
        {error, _} = Error -> Error
    end.

error_at(Dir, Kind, At, What) ->
    witness_log_recording_file:error_at(witness_log_recording_file:name(Dir, Kind), At, What).

%% A file with a map as its first block.
map(Dir, Kind, Atoms) ->
    with_file(Dir, Kind, fun(File) ->
        First = witness_log_recording_file:first_offset(),
        maybe
            {ok, Bytes, _} ?= witness_log_recording_file:read(First, File),
            {ok, Map} ?= witness_log_recording_term:decode(Bytes, Atoms),
            true ?= is_map(Map),
            {ok, witness_log_recording_file:recording(File), Map}
        else
            {refused, What} -> witness_log_recording_file:damage(First, {contents, What}, File);
            false -> witness_log_recording_file:damage(First, {contents, ~"it is no map"}, File);
            {error, _} = Error -> Error;
            _ -> cut
        end
    end).

with_file(Dir, Kind, Fun) ->
    case witness_log_recording_file:open(Dir, Kind) of
        {ok, File} ->
            try
                Fun(File)
            after
                witness_log_recording_file:close(File)
            end;
        {error, {_, #{what := cut}}} -> cut;
        {error, _} = Error -> Error
    end.

%% Numbers of calls, from a map of calls to their numbers.
calls(Header, Dir) ->
    Calls = maps:get(calls, Header, #{}),
    case is_map(Calls) andalso lists:all(fun is_call/1, maps:to_list(Calls)) of
        true -> {ok, #{Number => Call || Call := Number <- Calls}};
        false -> error_at(Dir, header, witness_log_recording_file:first_offset(), {contents, ~"the table of calls is none"})
    end.

is_call({{Module, Function, Arity}, Number}) ->
    is_atom(Module) andalso is_atom(Function) andalso is_integer(Arity) andalso is_integer(Number);
is_call(_) -> false.

%% Older recordings have none.
recorded_rows(Header, Dir) ->
    case witness_event_wrapper:table(maps:get(signatures, Header, [])) of
        {ok, Rows} -> {ok, Rows};
        {error, {_, Reason}} ->
            error_at(Dir, header, witness_log_recording_file:first_offset(),
                     {contents, [~"its rows for signatures: ", witness_event_wrapper:format_reason(Reason)]})
    end.

%% The file `modules' is written last. If it is not complete, the recording was not ended.
read_end(Dir, Id, Atoms) ->
    case map(Dir, modules, Atoms) of
        {ok, Id, #{ended := _, names := Names, sizes := #{order := _, data := _, processes := _}} = End}
          when is_integer(Names) -> add_names(Dir, Names, End);
        {ok, Id, _} ->
            error_at(Dir, modules, witness_log_recording_file:first_offset(),
                     {contents, ~"it does not say how the recording ended"});
        {ok, _, _} -> wrong_recording(Dir, modules);
        cut -> {ok, #{}};
        {error, {_, #{what := {posix, enoent}}}} -> {ok, #{}};
        {error, _} = Error -> Error
    end.

%% So many bytes of names follow the map.
add_names(Dir, Names, End) ->
    with_file(Dir, modules, fun(File) ->
        maybe
            {ok, _, Next} ?= witness_log_recording_file:read(witness_log_recording_file:first_offset(), File),
            Size = witness_log_recording_file:size(File),
            true ?= Size >= Next + Names,
            ok ?= witness_log_recording_file:check_end(File),
            case Size of
                _ when Size =:= Next + Names -> {ok, End};
                _ -> witness_log_recording_file:damage(Next + Names, {contents, ~"there is something behind its end"}, File)
            end
        else
            {error, _} = Error -> Error;
            _ -> {ok, #{}}
        end
    end).

wrong_recording(Dir, Kind) -> error_at(Dir, Kind, 0, {contents, ~"it belongs to another recording"}).

open_files(Dir, Id, Header, Calls, End, Atoms) ->
    Full = case Header of #{options := #{full_ids := true}} -> true; #{} -> false end,
    maybe
        {ok, Sizes} ?= file_sizes(Dir, Id, [order, data, processes], #{}),
        {ok, Found} ?= read_index(Dir, Id),
        {ok, Shorter} ?= compare_sizes(Dir, Sizes, [S || S <- [maps:get(sizes, End, none), element(2, Found)], S =/= none]),
        {ok, Index, Cut} ?= find_index(Dir, Full, Found, Shorter),
        {ok, CutProcesses} ?= find_cut(Dir),
        AllCut = lists:usort(Shorter ++ Cut ++ CutProcesses),
        Complete = End =/= #{} andalso AllCut =:= [],
        Stopped = case End of #{ended := finished, stopped := How} when Complete -> How; #{} -> none end,
        Info = #{complete => Complete, ended => maps:get(ended, End, unknown), stopped => Stopped, cut => AllCut,
                 indexed => element(1, Found) =/= none, sizes => Sizes},
        {ok, #{dir => Dir, header => Header, info => Info, full => Full, calls => Calls, atoms => Atoms, index => Index}}
    end.

file_sizes(_, _, [], Sizes) -> {ok, Sizes};
file_sizes(Dir, Id, [Kind | Kinds], Sizes) ->
    Opened = with_file(Dir, Kind, fun(File) ->
        {witness_log_recording_file:recording(File), witness_log_recording_file:size(File)}
    end),
    case Opened of
        {error, _} = Error -> Error;
        {Id, Size} -> file_sizes(Dir, Id, Kinds, Sizes#{Kind => Size});
        {_, _} -> wrong_recording(Dir, Kind);
        cut -> file_sizes(Dir, Id, Kinds, Sizes#{Kind => 0})
    end.

%% An incomplete index counts as missing.
read_index(Dir, Id) ->
    Found = with_file(Dir, index, fun(File) ->
        {witness_log_recording_file:recording(File), witness_log_recording_index:load(File)}
    end),
    case Found of
        {Id, {ok, Index, Sizes}} -> {ok, {Index, Sizes}};
        {Id, {error, _} = Error} -> Error;
        {Id, cut} -> {ok, {none, none}};
        {error, {_, #{what := {posix, enoent}}}} -> {ok, {none, none}};
        {error, _} = Error -> Error;
        cut -> {ok, {none, none}};
        {_, _} -> wrong_recording(Dir, index)
    end.

%% A file that is smaller than it was at the end was cut since.
compare_sizes(Dir, Sizes, Ends) ->
    Differing = [{Kind, Size, End} || Kind := Size <- Sizes, #{Kind := End} <- Ends, Size =/= End],
    case [{Kind, End} || {Kind, Size, End} <- Differing, Size > End] of
        [{Kind, End} | _] -> error_at(Dir, Kind, End, {contents, ~"there is something behind its end"});
        [] -> {ok, lists:usort([Kind || {Kind, _, _} <- Differing])}
    end.

find_index(_, _, {Index, _}, []) when Index =/= none -> {ok, Index, []};
find_index(Dir, Full, {Index, _}, [processes]) when Index =/= none -> find_index(Dir, Full, {Index, none}, []);
find_index(Dir, Full, _, _) ->
    Built = with_file(Dir, order, fun(Order) ->
        with_file(Dir, data, fun(Data) -> witness_log_recording_index:build(Order, Data, Full) end)
    end),
    case Built of
        cut -> {ok, witness_log_recording_index:empty(), []};
        _ -> Built
    end.

%% Only heads of blocks are read.
find_cut(Dir) ->
    case with_file(Dir, processes, fun(File) -> witness_log_recording_file:check_end(File) end) of
        ok -> {ok, []};
        cut -> {ok, [processes]};
        {error, _} = Error -> Error
    end.

-doc "The header: `otp`, `erts`, `root`, `options`, `started`, `calls` and further keys of the recorder.".
-spec header(recording()) -> map().
header(#{header := Header}) -> Header.

-doc "Whether the recording is complete, and how it ended.".
-spec info(recording()) -> info().
info(#{info := Info}) -> Info.

-doc """
Modules that ran unwoven, so that messages that they took are not in the recording. Calls of modules with native
functions are recorded, and Witness is not part of the program. If the recording was not ended, the result is the modules that
could not be woven. With `tracing_only` there are none: it records the messages that arrived, whatever code takes them.
""".
-spec unwoven(recording()) -> {ok, [module()]} | {error, error()}.
unwoven(#{header := Header} = R) ->
    maybe
        {ok, End} ?= read_modules(R),
        {ok, _} ?= modules(R),
        {ok, [Module || {Module, _} <- witness_log_recording_refusal:unwoven(Header, End)]}
    else
        {error, _} = Error -> Error
    end.

-doc "Why the recording cannot be replayed, by its own contents.".
-spec refusals(recording()) -> {ok, [witness_log_recording_refusal:reason()]} | {error, error()}.
refusals(#{header := Header} = R) ->
    case read_modules(R) of
        {ok, End} -> {ok, witness_log_recording_refusal:reasons(Header, End)};
        {error, _} = Error -> Error
    end.

%% The contents of the file `modules'; empty if the recording was not ended.
read_modules(#{dir := Dir, atoms := Atoms}) ->
    case map(Dir, modules, Atoms) of
        {ok, _, End} -> {ok, End};
        {error, {_, #{what := What}}} = Error when What =/= {posix, enoent} -> Error;
        _ -> {ok, #{}}
    end.

-doc "The modules that were loaded at the end, each with its MD5 and whether it was woven. Empty if the recording was not ended.".
-spec modules(recording()) -> {ok, [{module(), binary(), boolean()}]} | {error, error()}.
modules(#{dir := Dir} = R) ->
    case read_modules(R) of
        {ok, #{modules := Modules}} when is_list(Modules) ->
            case lists:all(fun is_module/1, proper(Modules)) of
                true when length(Modules) >= 0 -> {ok, Modules};
                _ -> error_at(Dir, modules, witness_log_recording_file:first_offset(),
                              {contents, ~"the modules that were loaded are none"})
            end;
        {ok, #{}} -> {ok, []};
        {error, _} = Error -> Error
    end.

-doc """
The processes that waited for a message or in a call when the recording ended as planned: they had done all their recorded steps.
`none`: it did not end so.
""".
-spec waiting(recording()) -> {ok, #{pos_integer() => []}} | none | {error, error()}.
waiting(#{info := #{stopped := none}}) -> none;
waiting(#{dir := Dir} = R) ->
    case read_modules(R) of
        {ok, #{waiting := Ids}} when is_binary(Ids) ->
            case witness_log_recording_number:read_ascending(Ids) of
                {ok, Waiting} -> {ok, maps:from_keys(Waiting, [])};
                malformed -> error_at(Dir, modules, witness_log_recording_file:first_offset(),
                                      {contents, ~"the processes that waited are damaged"})
            end;
        {ok, #{}} -> {ok, #{}};
        {error, _} = Error -> Error
    end.

-doc "Whether births and entries have times.".
-spec has_times(recording()) -> boolean().
has_times(#{header := #{options := #{times := true}}}) -> true;
has_times(#{}) -> false.

-doc """
The time at which a complete recording with times ended as planned, in nanoseconds since it was opened: nothing that happened before
is missing.
""".
-spec ended_at(recording()) -> none | non_neg_integer().
ended_at(#{info := #{stopped := none}}) -> none;
ended_at(R) ->
    case read_modules(R) of
        {ok, #{ended_at := Time}} when is_integer(Time), Time >= 0 -> Time;
        _ -> none
    end.

is_module({Module, Digest, Woven}) -> is_atom(Module) andalso is_binary(Digest) andalso is_boolean(Woven);
is_module(_) -> false.

%% The list, or the part before an improper tail.
proper([Term | Terms]) -> [Term | proper(Terms)];
proper(_) -> [].

-doc "The names of all atoms that the recorded VM had at the end, in the order of its table.".
-spec atoms(recording()) -> {ok, [binary()]} | {error, error()}.
atoms(#{dir := Dir}) ->
    Read = with_file(Dir, modules, fun(File) ->
        maybe
            {ok, _, Next} ?= witness_log_recording_file:read(witness_log_recording_file:first_offset(), File),
            {_, {Names, _}, _} ?= witness_log_recording_file:fold(fun(At, Bytes, Acc) -> names(At, Bytes, Acc, File) end, {[], 0},
                                                                  Next, File),
            {ok, lists:reverse(Names)}
        end
    end),
    case Read of
        {ok, Names} -> {ok, Names};
        {error, {_, #{what := What}}} = Error when What =/= {posix, enoent} -> Error;
        _ -> {ok, []}
    end.

names(_, <<>>, Names, _) -> {ok, Names};
names(At, _, {_, Total}, File) when Total > ?MAX_NAMES_BYTES ->
    witness_log_recording_file:damage(At, {contents, ~"the names of its atoms take more than 256 MiB"}, File);
names(At, Bytes, {Names, Total}, File) ->
    maybe
        {Size, Rest} ?= witness_log_recording_number:read(Bytes),
        true ?= Size =< ?MAX_NAME_BYTES,
        <<Name:Size/binary, Rest1/binary>> ?= Rest,
        true ?= is_name(Name),
        names(At, Rest1, {[binary:copy(Name) | Names], Total + Size + ?NAME_COST_BYTES}, File)
    else
        _ -> witness_log_recording_file:damage(At, {contents, ~"a name is damaged"}, File)
    end.

%% Names of which a VM can make an atom.
is_name(Name) ->
    case unicode:characters_to_list(Name) of
        Chars when is_list(Chars) -> length(Chars) =< 255;
        _ -> false
    end.

%% --- processes -------------------------------------------------------------------

-doc "All processes with a recorded birth, by their ids.".
-spec processes(recording()) -> {ok, [process()]} | {error, error()}.
processes(R) ->
    Folded = fold_processes(fun
        ({birth, #{id := Id} = Birth}, {Births, Ends, More}) -> {Births#{Id => Birth}, Ends, More};
        ({ended, Id}, {Births, Ends, More}) -> {Births, Ends#{Id => true}, More};
        ({signature, Id, Signature}, {Births, Ends, More}) -> {Births, Ends, more(Id, #{called => Signature}, More)};
        ({early, Id}, {Births, Ends, More}) -> {Births, Ends, more(Id, #{early => true}, More)};
        ({born_at, Id, Time}, {Births, Ends, More}) -> {Births, Ends, more(Id, #{time => Time}, More)}
    end, {#{}, #{}, #{}}, R),
    case Folded of
        {ok, {Births, Ends, More}} ->
            {ok, [Process#{called => signature(Process, R)}
                  || {Id, Birth} <- lists:sort(maps:to_list(Births)),
                     Process <- [maps:merge(Birth#{ended => is_map_key(Id, Ends)}, maps:get(Id, More, #{}))]]};
        {error, _} = Error -> Error
    end.

-doc """
The signature of a process as its author wrote it, with the rows of the recording and of `open/2`. `called`: the name that the recording
has of a process that was spawned with a fun.
""".
-spec signature(#{signature := term(), called => term(), _ => _}, recording()) -> called().
signature(#{called := {M, F, Args} = Called}, R) when is_atom(M), is_atom(F), length(Args) >= 0 -> resolve(Called, R);
signature(#{signature := {M, F, Args} = Raw}, R) when is_atom(M), is_atom(F), length(Args) >= 0 -> resolve(Raw, R);
signature(#{signature := {M, F, Arity}}, _) when is_atom(M), is_atom(F), is_integer(Arity), Arity >= 0 -> {M, F, Arity};
signature(_, _) -> undefined.

%% What is wrapped may be anything.
resolve({M, F, Args} = Raw, #{signatures := Table}) ->
    case witness_event_signature:resolve(Raw, Table) of
        {M1, F1, Args1} = Signature when is_atom(M1), is_atom(F1), length(Args1) >= 0 -> Signature;
        _ -> {M, F, length(Args)}
    end.

-doc "The rows for signatures of the recording, with those of `open/2`.".
-spec rows(recording()) -> witness_event_wrapper:table().
rows(#{signatures := Table}) -> Table.

more(Id, Of, More) -> More#{Id => maps:merge(maps:get(Id, More, #{}), Of)}.

-doc "Folds over births and ends, in the order in which they were written. An end may precede its birth.".
-spec fold_processes(fun((witness_log_recording_process:item(), Acc) -> Acc), Acc, recording()) ->
    {ok, Acc} | {error, error()}.
fold_processes(Fun, Acc, R) -> fold_items(fun(_, Item, A) -> Fun(Item, A) end, Acc, R).

-doc "Folds over births, each with its place for `birth/3`.".
-spec fold_births(fun((Place :: non_neg_integer(), witness_log_recording_process:birth(), Acc) -> Acc), Acc, recording()) ->
    {ok, Acc} | {error, error()}.
fold_births(Fun, Acc, R) ->
    fold_items(fun
        (Place, {birth, Birth}, A) -> Fun(Place, Birth, A);
        (_, _, A) -> A
    end, Acc, R).

-doc "The birth of a process, at its place.".
-spec birth(Place :: non_neg_integer(), pos_integer(), recording()) ->
    {ok, witness_log_recording_process:birth()} | none | {error, error()}.
birth(Place, Id, #{dir := Dir, atoms := Atoms}) ->
    First = fun
        ({birth, #{id := Of} = Birth}, none) when Of =:= Id -> Birth;
        (_, Found) -> Found
    end,
    Read = with_file(Dir, processes, fun(File) ->
        maybe
            {ok, Bytes, _} ?= witness_log_recording_file:read(Place, File),
            {ok, Found, _} ?= items(First, none, Place, Bytes, Atoms, {infinity, infinity}, File),
            {ok, Found}
        end
    end),
    case Read of
        {ok, #{} = Birth} -> {ok, Birth};
        {error, _} = Error -> Error;
        _ -> none
    end.

fold_items(Fun, Acc, #{dir := Dir, atoms := Atoms}) ->
    Folded = with_file(Dir, processes, fun(File) ->
        Size = witness_log_recording_file:size(File),
        Room = {?FREE_RECORDS + ?RECORDS_PER_BYTE * Size, ?FREE_WORDS + ?WORDS_PER_BYTE * Size},
        witness_log_recording_file:fold(fun(At, Bytes, {A, Left}) ->
            maybe
                {ok, A1, Less} ?= items(fun(Item, B) -> Fun(At, Item, B) end, A, At, Bytes, Atoms, Left, File),
                {ok, {A1, Less}}
            end
        end, {Acc, Room}, witness_log_recording_file:first_offset(), File)
    end),
    case Folded of
        {error, _} = Error -> Error;
        {_, {Acc1, _}, _} -> {ok, Acc1};
        cut -> {ok, Acc}
    end.

items(Fun, Acc, At, Bytes, Atoms, Room, File) ->
    case witness_log_recording_process:fold(Fun, Acc, Bytes, Atoms, Room) of
        {ok, _, _} = Folded -> Folded;
        {malformed, What} -> witness_log_recording_file:damage(At, {contents, What}, File)
    end.

-doc "The ids of the processes that have entries.".
-spec ids(recording()) -> [pos_integer()].
ids(#{index := Index}) -> witness_log_recording_index:ids(Index).

-doc """
The number of entries of a process. If the file `data` was cut, fewer may be readable: those before the first one
with missing data.
""".
-spec entries(pos_integer(), recording()) -> {ok, non_neg_integer()} | {error, error()}.
entries(Id, R) -> lookup(Id, fun(#{entries := Entries}) -> Entries end, 0, R).

-doc "The processes of which a process took messages, and how many of each.".
-spec demand(pos_integer(), recording()) -> {ok, #{pos_integer() => pos_integer()}} | {error, error()}.
demand(Id, R) -> lookup(Id, fun(#{demand := Demand}) -> Demand end, #{}, R).

lookup(Id, Field, Default, #{index := Index} = R) ->
    case witness_log_recording_index:lookup(Id, Index, none) of
        {ok, Process} -> {ok, Field(Process)};
        none -> {ok, Default};
        malformed -> damaged_index(R)
    end.

damaged_index(#{dir := Dir}) ->
    error_at(Dir, index, witness_log_recording_file:first_offset(), {contents, ~"a process is damaged"}).

%% --- entries ---------------------------------------------------------------------

-doc "Folds over the entries of a process, in order. An unknown process has no entries. For many processes: `with_cursors/2`.".
-spec fold(fun((entry(), Acc) -> Acc), Acc, pos_integer(), recording()) -> {ok, Acc} | {error, error()}.
fold(Fun, Acc, Id, R) ->
    fold_runs(fun
        ({from, From, N}, A) -> repeat(N, {from, From}, Fun, A);
        ({timeout, N}, A) -> repeat(N, timeout, Fun, A);
        (Entry, A) -> Fun(Entry, A)
    end, Acc, Id, R).

repeat(0, _, _, Acc) -> Acc;
repeat(N, Entry, Fun, Acc) -> repeat(N - 1, Entry, Fun, Fun(Entry, Acc)).

-doc "The same; consecutive equal entries are passed once, with their number.".
-spec fold_runs(fun((run(), Acc) -> Acc), Acc, pos_integer(), recording()) -> {ok, Acc} | {error, error()}.
fold_runs(Fun, Acc, Id, R) ->
    with_files(fun(Files) ->
        maybe
            {ok, Cursor} ?= cursor(Id, none, Files, R),
            fold_cursor(Fun, Acc, Cursor)
        end
    end, R).

fold_cursor(_, Acc, none) -> {ok, Acc};
fold_cursor(Fun, Acc, Cursor) ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, Entry, Cursor1} -> fold_cursor(Fun, Fun(Entry, Acc), Cursor1);
        done -> {ok, Acc};
        {error, _} = Error -> Error
    end.

-doc """
Reads the entries of several processes side by side. The fun gets a function that returns the cursor of a process (`none`: it has
no entries), for `witness_log_recording_cursor:next/1`. It is valid while the fun runs, in the calling process. The cursors share
a cache of blocks.
""".
-spec with_cursors(fun((fun((pos_integer()) ->
                                {ok, witness_log_recording_cursor:cursor() | none} | {error, error()})) -> Result),
                   recording()) -> Result | {error, error()}.
with_cursors(Fun, R) ->
    Cache = witness_log_recording_blocks:new(),
    try
        with_files(fun(Files) -> Fun(fun(Id) -> cursor(Id, Cache, Files, R) end) end, R)
    after
        witness_log_recording_blocks:delete(Cache)
    end.

%% Files that were cut within their heads have no entries.
with_files(Fun, #{dir := Dir}) ->
    Read = with_file(Dir, order, fun(Order) -> with_file(Dir, data, fun(Data) -> Fun({Order, Data}) end) end),
    case Read of
        cut -> Fun(none);
        _ -> Read
    end.

cursor(Id, Blocks, {OrderFile, DataFile}, #{info := #{complete := Complete}, index := Index} = R) ->
    case witness_log_recording_index:lookup(Id, Index, Blocks) of
        {ok, #{order := Order, data := Data}} ->
            {ok, witness_log_recording_cursor:new((maps:with([full, calls, atoms, ordered], R))#{
                id => Id, blocks => Blocks, complete => Complete, order => {OrderFile, Order}, data => {DataFile, Data}})};
        none -> {ok, none};
        malformed -> damaged_index(R)
    end;
cursor(_, _, none, _) ->
    {ok, none}.

%% --- errors ----------------------------------------------------------------------

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error(#{file := File, what := {posix, Reason}}) -> [name(File), ~": ", file:format_error(Reason)];
format_error(#{file := File, offset := Offset, what := What}) ->
    [name(File), ~": at byte ", integer_to_binary(Offset), ~": ", describe(What)].

name(File) when is_binary(File) -> File;
name(File) -> unicode:characters_to_binary(File).

describe(magic) -> ~"this is no file of a recording";
describe({version, Version}) -> [~"version ", integer_to_binary(Version), ~" of the format, of which versions 1 to 3 are known"];
describe(kind) -> ~"this is another file of a recording";
describe(head) -> ~"the head of the file is damaged";
describe(cut) -> ~"the file ends too early";
describe(block_head) -> ~"the head of a block is damaged";
describe(block) -> ~"a block is damaged";
describe({block, too_large}) -> ~"a block is too large";
describe({contents, What}) -> What.
