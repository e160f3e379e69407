-module(witness_otp_network).
-moduledoc "Programs with protocols and keys.".

-include_lib("public_key/include/public_key.hrl").
-include_lib("kernel/include/file.hrl").

-export([tls/0, http/0, http_tls/0, ssh/0, ssh_files/0, hashes/0, random/0, ciphers/0, signatures/0,
         certificates/0, asn1/0, ftp/0, tftp/0]).

made() -> public_key:pkix_test_data(#{server_chain => chain(), client_chain => chain()}).

chain() -> #{root => options(), intermediates => [], peer => options()}.

options() -> [{key, {namedCurve, secp256r1}}, {digest, sha256}].

tls() ->
    {ok, _} = application:ensure_all_started(ssl),
    #{server_config := Ours, client_config := Theirs} = made(),
    {ok, Listens} = ssl:listen(0, [{reuseaddr, true}, {active, false}, {ip, {127, 0, 0, 1}} | Ours]),
    {ok, {_, Port}} = ssl:sockname(Listens),
    spawn_link(fun() ->
        {ok, Begun} = ssl:transport_accept(Listens),
        {ok, Socket} = ssl:handshake(Begun, 10000),
        {ok, Text} = ssl:recv(Socket, 5),
        ok = ssl:send(Socket, lists:reverse(Text)),
        ssl:close(Socket)
    end),
    {ok, Socket} = ssl:connect({127, 0, 0, 1}, Port,
                               [{active, true}, {verify, verify_peer}, {server_name_indication, disable} | Theirs], 10000),
    {ok, [{protocol, Version}]} = ssl:connection_information(Socket, [protocol]),
    ok = ssl:send(Socket, "hello"),
    Text = receive {ssl, Socket, Is} -> Is end,
    receive {ssl_closed, Socket} -> {Text, Version} end.

site() ->
    Dir = witness_otp_program:folder(),
    ok = file:write_file(filename:join(Dir, "page.txt"), "a page"),
    [{port, 0}, {server_name, "localhost"}, {server_root, Dir}, {document_root, Dir}, {bind_address, {127, 0, 0, 1}}].

http() ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, Server} = inets:start(httpd, site()),
    [{port, Port}] = httpd:info(Server, [port]),
    Url = "http://127.0.0.1:" ++ integer_to_list(Port),
    {ok, {{_, 200, _}, _, Page}} = httpc:request(Url ++ "/page.txt"),
    {ok, Request} = httpc:request(get, {Url ++ "/missing", []}, [], [{sync, false}]),
    Missing = receive {http, {Request, {{_, Code, _}, _, _}}} -> Code end,
    ok = inets:stop(httpd, Server),
    {Page, Missing}.

http_tls() ->
    {ok, _} = application:ensure_all_started(inets),
    {ok, _} = application:ensure_all_started(ssl),
    #{server_config := Ours, client_config := Theirs} = made(),
    {ok, Server} = inets:start(httpd, [{socket_type, {ssl, Ours}} | site()]),
    [{port, Port}] = httpd:info(Server, [port]),
    Url = "https://127.0.0.1:" ++ integer_to_list(Port) ++ "/page.txt",
    {ok, {{_, 200, _}, _, Page}} = httpc:request(get, {Url, []}, [{ssl, [{server_name_indication, disable} | Theirs]}], []),
    ok = inets:stop(httpd, Server),
    Page.

host() ->
    Dir = witness_otp_program:folder(),
    Key = public_key:generate_key({namedCurve, secp256r1}),
    ok = file:write_file(filename:join(Dir, "ssh_host_ecdsa_key"),
                         public_key:pem_encode([public_key:pem_entry_encode('ECPrivateKey', Key)])),
    {ok, _} = application:ensure_all_started(ssh),
    {ok, Daemon} = ssh:daemon({127, 0, 0, 1}, 0,
                              [{system_dir, Dir}, {user_dir, Dir}, {password, "secret"},
                               {exec, {direct, fun(Text) -> {ok, string:uppercase(Text)} end}},
                               {subsystems, [ssh_sftpd:subsystem_spec([{cwd, Dir}, {root, Dir}])]}]),
    {ok, Info} = ssh:daemon_info(Daemon),
    {ok, Connection} = ssh:connect({127, 0, 0, 1}, proplists:get_value(port, Info),
                                   [{user, "me"}, {password, "secret"}, {silently_accept_hosts, true}, {user_interaction, false},
                                    {user_dir, Dir}], 20000),
    {Daemon, Connection}.

ssh() ->
    {Daemon, Connection} = host(),
    {ok, Channel} = ssh_connection:session_channel(Connection, 10000),
    success = ssh_connection:exec(Connection, Channel, "shout", 10000),
    Text = receive {ssh_cm, Connection, {data, Channel, 0, Data}} -> Data end,
    receive {ssh_cm, Connection, {closed, Channel}} -> ok end,
    ok = ssh:close(Connection),
    ok = ssh:stop_daemon(Daemon),
    Text.

ssh_files() ->
    {Daemon, Connection} = host(),
    {ok, Channel} = ssh_sftp:start_channel(Connection),
    ok = ssh_sftp:write_file(Channel, "/sent", <<"some text">>),
    {ok, Text} = ssh_sftp:read_file(Channel, "/sent"),
    {ok, #file_info{size = Size}} = ssh_sftp:read_file_info(Channel, "/sent"),
    ok = ssh_sftp:stop_channel(Channel),
    ok = ssh:close(Connection),
    ok = ssh:stop_daemon(Daemon),
    {Text, Size}.

hashes() ->
    Hashes = witness_otp_program:each(fun(Kind) -> {Kind, binary:encode_hex(crypto:hash(Kind, <<"text">>))} end,
                                      [md5, sha, sha256, sha512, blake2b]),
    State = lists:foldl(fun(Part, State) -> crypto:hash_update(State, Part) end, crypto:hash_init(sha256), [<<"te">>, <<"xt">>]),
    {Hashes, proplists:get_value(sha256, Hashes) =:= binary:encode_hex(crypto:hash_final(State)),
     crypto:mac(hmac, sha256, <<"key">>, <<"text">>)}.

random() ->
    Drawn = witness_otp_program:each(fun(N) -> crypto:strong_rand_bytes(N) end, [1, 5, 16]),
    {Drawn, rand:uniform(1000), rand:uniform(), [rand:uniform(10) || _ <- [1, 2, 3]], rand:normal(),
     element(1, rand:uniform_s(100, rand:seed_s(exsss, {1, 2, 3}))), rand:bytes(3)}.

ciphers() ->
    Key = crypto:strong_rand_bytes(32),
    Nonce = crypto:strong_rand_bytes(12),
    {Text, Tag} = crypto:crypto_one_time_aead(aes_256_gcm, Key, Nonce, <<"secret">>, <<"more">>, true),
    Plain = crypto:crypto_one_time_aead(aes_256_gcm, Key, Nonce, Text, <<"more">>, Tag, false),
    State = crypto:crypto_init(aes_128_ctr, <<0:128>>, <<1:128>>, true),
    {Public, Private} = crypto:generate_key(ecdh, x25519),
    {Other, Theirs} = crypto:generate_key(ecdh, x25519),
    {Plain, byte_size(Text), crypto:crypto_update(State, <<"stream">>),
     crypto:compute_key(ecdh, Other, Private, x25519) =:= crypto:compute_key(ecdh, Public, Theirs, x25519)}.

signatures() ->
    Rsa = public_key:generate_key({rsa, 1024, 65537}),
    Ec = public_key:generate_key({namedCurve, secp256r1}),
    Signed = public_key:sign(<<"text">>, sha256, Ec),
    {_, _} = {Public, Private} = crypto:generate_key(eddsa, ed25519),
    Mark = crypto:sign(eddsa, none, <<"text">>, [Private, ed25519]),
    RsaPublic = #'RSAPublicKey'{modulus = Rsa#'RSAPrivateKey'.modulus, publicExponent = 65537},
    {public_key:verify(<<"text">>, sha256, public_key:sign(<<"text">>, sha256, Rsa), RsaPublic),
     crypto:verify(eddsa, none, <<"text">>, Mark, [Public, ed25519]), byte_size(Signed) > 60,
     public_key:decrypt_private(public_key:encrypt_public(<<"x">>, RsaPublic), Rsa)}.

certificates() ->
    #{server_config := Ours, client_config := Theirs} = made(),
    Certificate = proplists:get_value(cert, Ours),
    Decoded = public_key:pkix_decode_cert(Certificate, otp),
    Pem = public_key:pem_encode([{'Certificate', Certificate, not_encrypted}]),
    [{'Certificate', Certificate, not_encrypted}] = public_key:pem_decode(Pem),
    {is_record(Decoded, 'OTPCertificate'),
     [element(1, public_key:pkix_path_validation(Root, [Certificate], [])) || Root <- proplists:get_value(cacerts, Theirs)],
     public_key:pkix_is_self_signed(Certificate)}.

asn1() ->
    Dir = witness_otp_program:folder(),
    File = filename:join(Dir, "Made.asn1"),
    ok = file:write_file(File, "Made DEFINITIONS AUTOMATIC TAGS ::= BEGIN P ::= SEQUENCE { name UTF8String, age INTEGER } END\n"),
    ok = asn1ct:compile(File, [ber, noobj, {outdir, Dir}]),
    filelib:wildcard("*", Dir).

ftp() ->
    {ok, Listens} = gen_tcp:listen(0, [binary, {packet, line}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listens),
    spawn_link(fun() ->
        {ok, Socket} = gen_tcp:accept(Listens),
        ok = gen_tcp:send(Socket, "220 ready\r\n"),
        answers(Socket)
    end),
    {ok, _} = application:ensure_all_started(ftp),
    {ok, Ftp} = ftp:open("127.0.0.1", [{port, Port}]),
    ok = ftp:user(Ftp, "me", "secret"),
    Where = ftp:pwd(Ftp),
    ok = ftp:close(Ftp),
    Where.

answers(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, <<"USER", _/binary>>} -> ok = gen_tcp:send(Socket, "331 password\r\n"), answers(Socket);
        {ok, <<"PWD", _/binary>>} -> ok = gen_tcp:send(Socket, "257 \"/home\" is here\r\n"), answers(Socket);
        {ok, _} -> ok = gen_tcp:send(Socket, "230 fine\r\n"), answers(Socket);
        {error, closed} -> ok
    end.

tftp() ->
    {ok, _} = application:ensure_all_started(tftp),
    Dir = witness_otp_program:folder(),
    ok = file:write_file(filename:join(Dir, "file"), binary:copy(<<"text">>, 1000)),
    {ok, Server} = tftp:start([{port, 0}, {callback, {".*", tftp_file, [{root_dir, Dir}]}}]),
    {ok, Info} = tftp:info(Server),
    {ok, Bytes} = tftp:read_file("file", binary, [{port, proplists:get_value(port, Info)}, {host, "127.0.0.1"}]),
    byte_size(Bytes).
