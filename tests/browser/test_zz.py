from tests.browser.test_screens import *
async def test_dbg(shown, look):
    await shown.sign_in()
    await shown.page.locator(".sessions .virtual-item").first.wait_for()
    print("ENGLISH", await shown.page.evaluate(ENGLISH))
