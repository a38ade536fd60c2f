# syntax=docker/dockerfile:1

FROM python:3.12-slim AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/memory-proxy
ENV PATH=/opt/memory-proxy/bin:$PATH
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY proxy ./proxy
RUN pip install .
# The table of current models is fetched here, that of all others comes with a package; the build
# fails unless both are at hand, because the proxy itself downloads nothing.
ENV TIKTOKEN_CACHE_DIR=/opt/memory-proxy/share/tiktoken
RUN mkdir -p "$TIKTOKEN_CACHE_DIR" \
 && python -c "import tiktoken; tiktoken.get_encoding('o200k_base')" \
 && python -c "from proxy.chat.tokens import Tokenizers; assert len(Tokenizers().warm()) == 2"

FROM python:3.12-slim
COPY --from=builder /opt/memory-proxy /opt/memory-proxy
COPY config /etc/memory-proxy
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin memory-proxy \
 && install --directory --owner=memory-proxy --group=memory-proxy --mode=0700 /data
ENV PATH=/opt/memory-proxy/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TIKTOKEN_CACHE_DIR=/opt/memory-proxy/share/tiktoken \
    MEMORY_PROXY_HOST=0.0.0.0 \
    MEMORY_PROXY_PORT=8080 \
    MEMORY_PROXY_STORE=sqlite:////data/memory.db \
    MEMORY_PROXY_SPOOL__PATH=/data/spool.db
USER memory-proxy
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['MEMORY_PROXY_PORT']}/healthz\", timeout=2)"]
# Longer than server.shutdown_timeout must be the patience of whoever stops the container.
STOPSIGNAL SIGTERM
ENTRYPOINT ["memory-proxy"]
CMD ["serve"]
