"""One of the Python clients, unmodified: seven calls of a visitor who becomes a person (`language-clients.test.ts`)."""

import importlib
import math
import os
import sys

name = sys.argv[1]
user = os.environ["SLUICE_USER"]
visitor = f"{user}-visitor"
intake = os.environ["SLUICE_INTAKE"]
failures = []

if name == "customerio":
    from customerio import CustomerIO

    # It speaks https only; the certificate of our own authority is in REQUESTS_CA_BUNDLE.
    client = CustomerIO(
        os.environ["SLUICE_SITE"],
        os.environ["SLUICE_KEY"],
        host="localhost",
        port=int(os.environ["SLUICE_TLS_PORT"]),
    )
    client.identify(user, email=f"{user}@example.com", plan="pro", score=math.nan)
    client.track(user, "bought", {"price": math.nan, "k": 1})
    client.pageview(user, "https://shop.example/docs")
    client.add_device(user, "token", "ios", last_used="1.790000001e+09")
    client.track(user, "last")
else:
    module = importlib.import_module(name)
    client = module.Client(
        os.environ["SLUICE_WRITE_KEY"],
        host=intake,
        on_error=lambda error, items: failures.append(str(error)),
    )
    traits = {"email": f"{user}@example.com", "plan": "pro"}
    client.track(anonymous_id=visitor, event="looked", properties={"k": 1})
    client.alias(visitor, user)
    if name.startswith("rudderstack"):
        client.identify(user, traits)
    else:
        client.identify(user_id=user, traits=traits)
    client.track(user, "bought", {"price": math.nan, "most": -math.inf, "k": 1})
    client.page(user, "docs", "Home", {"url": "https://shop.example/"})
    client.group(user, f"company-{user}", {"name": "Acme"})
    client.track(user, "last")
    client.flush()
    client.join()

if failures:
    sys.exit("; ".join(failures))
