-module(witness_record_names).
-moduledoc """
The signatures of processes that were spawned with funs. A fun has a name only where its module is loaded, in the recorded VM.
So the name is looked up when births are written, for programs that read them elsewhere.
""".

-export([rows/1, signatures/2]).

-doc "The rows for signatures of a recording with this header.".
-spec rows(Header :: map()) -> witness_event_wrapper:table().
rows(Header) ->
    {ok, Rows} = witness_event_wrapper:table(maps:get(signatures, Header, [])),
    Rows.

-doc "For whole records of the file `processes`: the records to write after them. `Rows`: `rows/1`.".
-spec signatures(binary(), witness_event_wrapper:table()) -> [binary()].
signatures(<<1, Rest/binary>>, Rows) ->
    {[Id, _, _, Size], Rest1} = witness_log_recording_number:several(4, Rest),
    <<External:Size/binary, Rest2/binary>> = Rest1,
    {_, Raw} = binary_to_term(External),
    [witness_log_recording_process:encode({signature, Id, Signature}) || Signature <- called(Raw, Rows)]
        ++ signatures(Rest2, Rows);
signatures(<<2, Rest/binary>>, Rows) ->
    {_, Rest1} = witness_log_recording_number:read(Rest),
    signatures(Rest1, Rows);
signatures(<<5, Rest/binary>>, Rows) ->
    {_, Rest1} = witness_log_recording_number:several(2, Rest),
    signatures(Rest1, Rows);
signatures(<<>>, _) -> [].

%% Without a fun the reader can resolve the signature by itself.
called({_, _, Args} = Raw, Rows) when is_list(Args) ->
    case has_fun(Args) of
        true ->
            case witness_event_signature:resolve(Raw, Rows) of
                Raw -> [];
                {Module, Name, _} = Called when is_atom(Module), is_atom(Name) -> [Called];
                _ -> []
            end;
        false -> []
    end;
called(_, _) -> [].

has_fun(Fun) when is_function(Fun) -> true;
has_fun([Head | Tail]) -> has_fun(Head) orelse has_fun(Tail);
has_fun(Tuple) when is_tuple(Tuple) -> has_fun(tuple_to_list(Tuple));
has_fun(_) -> false.
