"""A mail server of its own program (aiosmtpd): takes letters over TLS alone, with one user and password.

    server.py tls|starttls CERTIFICATE KEY

Prints its port, then each letter as a line of JSON.
"""
import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

mode, certificate, key = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


class Letters:
    async def handle_DATA(self, server, session, envelope):
        letter = {
            "user": session.auth_data.login.decode(),
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "content": envelope.content.decode(),
        }
        print(json.dumps(letter), flush=True)
        return "250 taken"


def who(server, session, envelope, mechanism, data):
    is_right = (data.login, data.password) == (b"archive", b"open sesame")
    return AuthResult(success=is_right, handled=False, auth_data=data)


def session():
    starttls = {"require_starttls": True, "tls_context": context} if mode == "starttls" else {}
    # With TLS from the first byte the program does not see it, so it must not ask for it.
    return SMTP(Letters(), authenticator=who, auth_required=True, auth_require_tls=mode == "starttls", **starttls)


async def serve():
    server = await asyncio.get_running_loop().create_server(
        session, "127.0.0.1", 0, ssl=context if mode == "tls" else None
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(60)


asyncio.run(serve())
